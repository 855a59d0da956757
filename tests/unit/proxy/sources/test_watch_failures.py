"""What a watch does when the server fails, is silent, or is away."""

import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from endpointslice.types import Kind
from proxy.sources.credentials import load_kubeconfig
from proxy.sources.sink import EventSink
from proxy.sources.transport import ApiServer
from proxy.sources.watch import PATIENT, KindWatch, Patience, Reunion
from tests.unit.proxy.sources.api_double import (
    CUT,
    PATIENCE_S,
    Answer,
    ApiDouble,
    Posted,
    answer_list,
    answer_status,
    service,
)
from tests.unit.proxy.sources.watching import EXPIRED, SERVICES, StartWatch, names_in, serve
from tests.waiting import until


@pytest.fixture
def nobody() -> Iterator[str]:
    """A URL where nobody listens, and nobody else can begin to."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(Answer([EXPIRED]), id="410 as an event"),
        pytest.param(answer_status(410, "too old resource version"), id="410 as the status"),
        pytest.param(answer_status(504, "Too large resource version"), id="a version of the future"),
    ],
)
def test_an_expired_watch_lists_again(end: Answer, double: ApiDouble, posted: Posted, start_watch: StartWatch) -> None:
    lists = [answer_list("Service", [service("a")], "7"), answer_list("Service", [service("b")], "90")]
    double.answer = serve(lists, [end, double.feed()])
    start_watch()

    assert names_in(posted.next()[0]) == ["shop/a"]
    assert names_in(posted.next()[0]) == ["shop/b"]
    until(lambda: len(double.watches()) == 2)
    assert [request.query["resourceVersion"] for request in double.watches()] == ["7", "90"]
    assert "resourceVersion" not in double.lists()[1].query


def test_silence_lists_again(double: ApiDouble, posted: Posted, start_watch: StartWatch) -> None:
    double.answer = serve([answer_list("Service", [])], [double.feed()])
    with capture_logs() as logs:
        start_watch(silence_s=3.0)  # the answers, too, must come within so long
        posted.next()
        posted.next()

    assert len(double.lists()) >= 2
    assert {log["event"] for log in logs} == {"kind_listed", "watch_expired"}  # nothing to worry about


def test_a_server_that_refuses_everything_empties_nothing(
    double: ApiDouble, posted: Posted, start_watch: StartWatch
) -> None:
    feed = double.feed()
    double.answer = serve([answer_list("Service", [service("a")])], [feed])
    watch = start_watch()
    posted.next()

    double.answer = lambda _: answer_status(503, "going down")
    feed.give(EXPIRED)
    until(lambda: len(double.requests) > 4)

    assert posted.is_quiet(0.05)
    assert watch.status.complete
    assert not watch.status.connected
    assert "503 going down" in watch.status.error


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer([b"<html>Bad gateway</html>"]), id="a page of a proxy"),
        pytest.param(answer_list("Pod", []), id="a list of another kind"),
        pytest.param(Answer([b'{"items": [', CUT]), id="a body cut off"),
        pytest.param(answer_status(403, "forbidden"), id="a kind that is refused but needed"),
    ],
)
def test_what_is_no_list_is_never_posted(
    answer: Answer, double: ApiDouble, posted: Posted, start_watch: StartWatch
) -> None:
    double.answer = serve([answer], [double.feed()])
    watch = start_watch()
    until(lambda: len(double.lists()) > 2)

    assert posted.is_quiet(0.05)
    assert not watch.status.complete
    assert watch.status.error


def test_a_server_that_comes_late_is_waited_for(double: ApiDouble, posted: Posted, start_watch: StartWatch) -> None:
    with capture_logs() as logs:
        start_watch()
        until(lambda: len(double.lists()) > 3)
        double.answer = serve([answer_list("Service", [service("a")])], [double.feed()])
        assert names_in(posted.next()[0]) == ["shop/a"]
        until(lambda: logs[-1]["event"] == "watch_regained")

    assert [log["event"] for log in logs] == ["watch_lost", "kind_listed", "watch_regained"]


def test_an_expired_watch_after_an_outage_is_not_waited_for_as_long_as_the_outage(
    double: ApiDouble, posted: Posted, start_watch: StartWatch
) -> None:
    away = answer_status(503, "away")
    double.answer = serve([answer_list("Service", [])], [away, away, away, Answer([EXPIRED]), double.feed()])
    attempts: list[int] = []

    def delay(attempt: int) -> float:
        attempts.append(attempt)
        return 0.0

    start_watch(delay=delay)
    posted.next()
    posted.next()

    assert attempts == [1, 2, 3, 1]


def test_a_watch_that_waits_tries_at_once_when_another_kind_has_reached_the_server_again(
    double: ApiDouble, posted: Posted, start_watch: StartWatch
) -> None:
    lists = [answer_status(503, "away"), answer_list("Service", [service("a")])]
    double.answer = serve(lists, [double.feed()])
    reunion = Reunion()
    start_watch(delay=lambda _: 100 * PATIENCE_S, reunion=reunion)
    until(lambda: len(double.lists()) == 1)

    began_s = time.monotonic()
    while not double.watches():
        reunion.tell()
        assert time.monotonic() < began_s + PATIENCE_S, "it waits on"
        time.sleep(0.005)

    (listed,) = posted.next()
    assert names_in(listed) == ["shop/a"]


def test_delays_are_drawn_anew() -> None:
    drawn = {PATIENT.delay(8) for _ in range(20)}

    assert len(drawn) > 1
    assert all(0 <= delay_s <= 30 for delay_s in drawn)


def test_delays_are_drawn_from_a_source_of_their_own() -> None:
    """A watch's thread that outlives its test would else fail a Hypothesis law, which sees that it isn't alone."""
    before = random.getstate()

    PATIENT.delay(8)

    assert random.getstate() == before


def test_a_server_that_was_never_reached_is_told_with_advice_and_only_once(
    double: ApiDouble, tmp_path: Path, nobody: str
) -> None:
    """In a pod that asks the ClusterIP, on a node where nothing serves ClusterIPs."""
    kubeconfig = double.kubeconfig(tmp_path / "config")
    api = ApiServer(lambda: load_kubeconfig(kubeconfig, nobody), "name another")
    patience = Patience(delay=lambda _: 0.01)
    watches = [
        KindWatch(api, SERVICES._replace(kind=kind), EventSink(kind, lambda _: None), patience)
        for kind in (Kind.NODE, Kind.POD)
    ]

    with capture_logs() as logs:
        for watch in watches:
            watch.start()
        until(lambda: sum(log["event"] == "watch_lost" for log in logs) == len(watches))
        for watch in watches:
            watch.stop()
            watch.join(PATIENCE_S)
    api.close()

    errors = [log for log in logs if log["log_level"] == "error"]
    assert errors == [
        {"event": "api_server_unreachable", "server": api.host, "advice": "name another", "log_level": "error"}
    ]
