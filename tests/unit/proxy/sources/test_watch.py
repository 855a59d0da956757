import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from endpointslice.decode import Changed, Listed
from endpointslice.types import Kind, Service
from proxy.sources.credentials import load_kubeconfig
from proxy.sources.transport import ApiServer
from proxy.sources.watch import PATIENT, KindWatch, Patience, Resource, Reunion
from tests.unit.proxy.sources.api_double import (
    CUT,
    END,
    PATIENCE_S,
    Answer,
    ApiDouble,
    Feed,
    Posted,
    Request,
    answer_list,
    answer_status,
    event,
    service,
)

SERVICES = Resource(Kind.SERVICE, "/api/v1/services", "!hidden", "spec.clusterIP!=None")
OPTIONAL = Resource(Kind.SERVICE_CIDR, "/apis/networking.k8s.io/v1/servicecidrs", permission="list and watch")
BOOKMARK = event("BOOKMARK", {"kind": "Service", "metadata": {"resourceVersion": "50"}})
EXPIRED = event("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version"})

REFUSAL_S = 0.3
Start = Callable[..., KindWatch]


@pytest.fixture
def start(double: ApiDouble, posted: Posted, tmp_path: Path) -> Iterator[Start]:
    """Starts a watch on the double; it ends with the test."""
    kubeconfig = double.kubeconfig(tmp_path / "config")
    api = ApiServer(lambda: load_kubeconfig(kubeconfig))
    started: list[KindWatch] = []

    def start(
        resource: Resource = SERVICES,
        silence_s: float = PATIENCE_S,
        delay: Callable[[int], float] = lambda _: 0.01,
        reunion: Reunion | None = None,
    ) -> KindWatch:
        watch = KindWatch(api, resource, posted, Patience(silence_s, delay=delay, refusal_s=REFUSAL_S), reunion)
        watch.start()
        started.append(watch)
        return watch

    yield start
    for watch in started:
        watch.stop()
        watch.join(PATIENCE_S)
        assert not watch._thread.is_alive()  # noqa: SLF001  # it must end when told
    api.close()


def serve(lists: list[Answer], watches: list[Answer | Feed]) -> Callable[[Request], Answer]:
    """Answers in turn; the last of each kind again and again."""

    def answer(request: Request) -> Answer:
        if not request.is_watch:
            return lists.pop(0) if len(lists) > 1 else lists[0]
        given = watches.pop(0) if len(watches) > 1 else watches[0]
        return Answer(given) if isinstance(given, Feed) else given

    return answer


def ports_of(batch: object) -> list[int]:
    """The port of each Service in a batch of changes."""
    assert isinstance(batch, tuple)
    return [change.object.ports[0].port for change in batch if isinstance(change.object, Service)]


def wait_until(condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until_s, "waited in vain"
        time.sleep(0.005)


def names_in(listed: Changed | Listed) -> list[str]:
    assert isinstance(listed, Listed)
    return [change.name for change in listed.objects]


def test_a_list_is_posted_whole_however_many_pages_it_takes(double: ApiDouble, posted: Posted, start: Start) -> None:
    pages = [
        answer_list("Service", [service("a")], "7", "more"),
        answer_list("Service", [service("b")], "7", "last"),
        answer_list("Service", [service("c")], "7"),
    ]
    double.answer = serve(pages, [double.feed()])
    start()

    (listed,) = posted.next()

    assert names_in(listed) == ["shop/a", "shop/b", "shop/c"]
    wait_until(lambda: len(double.watches()) == 1)
    assert [request.query.get("continue") for request in double.lists()] == [None, "more", "last"]
    assert double.watches()[0].query["resourceVersion"] == "7"


def test_every_request_has_the_selectors(double: ApiDouble, posted: Posted, start: Start) -> None:
    double.answer = serve([answer_list("Service", [])], [double.feed()])
    start()
    posted.next()
    wait_until(lambda: len(double.watches()) == 1)

    for request in double.requests:
        assert request.path == "/api/v1/services"
        assert request.query["labelSelector"] == "!hidden"
        assert request.query["fieldSelector"] == "spec.clusterIP!=None"
    assert double.watches()[0].query["allowWatchBookmarks"] == "true"
    assert 300 <= int(double.watches()[0].query["timeoutSeconds"]) <= 600
    assert "resourceVersion" not in double.lists()[0].query


def test_an_expired_continue_token_starts_the_list_again(double: ApiDouble, posted: Posted, start: Start) -> None:
    pages = [
        answer_list("Service", [service("a")], "7", "more"),
        answer_status(410, "The provided continue parameter is too old"),
        answer_list("Service", [service("b")], "8"),
    ]
    double.answer = serve(pages, [double.feed()])
    start()

    (listed,) = posted.next()

    assert names_in(listed) == ["shop/b"]
    assert [request.query.get("continue") for request in double.lists()] == [None, "more", None]


def test_lines_that_come_together_are_one_batch(double: ApiDouble, posted: Posted, start: Start) -> None:
    feed = double.feed()
    double.answer = serve([answer_list("Service", [])], [feed])
    start()
    posted.next()

    feed.give(event("ADDED", service("a", port=1)) + event("MODIFIED", service("a", port=2)))

    assert ports_of(posted.next()) == [1, 2]


def test_a_line_is_posted_when_it_is_complete(double: ApiDouble, posted: Posted, start: Start) -> None:
    feed = double.feed()
    double.answer = serve([answer_list("Service", [])], [feed])
    start()
    posted.next()
    first, second = event("ADDED", service("a", port=1)), event("ADDED", service("b", port=2))

    feed.give(first + second[:20])
    assert ports_of(posted.next()) == [1]
    feed.give(second[20:-1])
    assert posted.is_quiet(0.1)
    feed.give(b"\n")
    assert ports_of(posted.next()) == [2]


def test_a_stream_that_ends_is_resumed_where_it_was(double: ApiDouble, posted: Posted, start: Start) -> None:
    first, second = double.feed(), double.feed()
    double.answer = serve([answer_list("Service", [], "7")], [first, second])
    start()
    posted.next()

    first.give(event("ADDED", service("a", version="12", port=1)), BOOKMARK, END)
    assert ports_of(posted.next()) == [1]
    second.give(event("MODIFIED", service("a", version="51", port=2)))
    assert ports_of(posted.next()) == [2]

    assert [request.query["resourceVersion"] for request in double.watches()] == ["7", "50"]
    assert len(double.lists()) == 1


def test_a_line_cut_in_its_middle_is_no_event(double: ApiDouble, posted: Posted, start: Start) -> None:
    first, second = double.feed(), double.feed()
    double.answer = serve([answer_list("Service", [], "7")], [first, second])
    start()
    posted.next()

    first.give(event("ADDED", service("a", version="12", port=1))[:-30], CUT)
    second.give(event("ADDED", service("a", version="12", port=1)))

    assert ports_of(posted.next()) == [1]
    assert [request.query["resourceVersion"] for request in double.watches()] == ["7", "7"]


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(Answer([EXPIRED]), id="410 as an event"),
        pytest.param(answer_status(410, "too old resource version"), id="410 as the status"),
        pytest.param(answer_status(504, "Too large resource version"), id="a version of the future"),
    ],
)
def test_an_expired_watch_lists_again(end: Answer, double: ApiDouble, posted: Posted, start: Start) -> None:
    lists = [answer_list("Service", [service("a")], "7"), answer_list("Service", [service("b")], "90")]
    double.answer = serve(lists, [end, double.feed()])
    start()

    assert names_in(posted.next()[0]) == ["shop/a"]
    assert names_in(posted.next()[0]) == ["shop/b"]
    wait_until(lambda: len(double.watches()) == 2)
    assert [request.query["resourceVersion"] for request in double.watches()] == ["7", "90"]
    assert "resourceVersion" not in double.lists()[1].query


def test_silence_lists_again(double: ApiDouble, posted: Posted, start: Start) -> None:
    double.answer = serve([answer_list("Service", [])], [double.feed()])
    with capture_logs() as logs:
        start(silence_s=0.2)
        posted.next()
        posted.next()

    assert len(double.lists()) >= 2
    assert {log["event"] for log in logs} == {"kind_listed", "watch_expired"}  # nothing to worry about


def test_a_server_that_refuses_everything_empties_nothing(double: ApiDouble, posted: Posted, start: Start) -> None:
    feed = double.feed()
    double.answer = serve([answer_list("Service", [service("a")])], [feed])
    watch = start()
    posted.next()

    double.answer = lambda _: answer_status(503, "going down")
    feed.give(EXPIRED)
    wait_until(lambda: len(double.requests) > 4)

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
def test_what_is_no_list_is_never_posted(answer: Answer, double: ApiDouble, posted: Posted, start: Start) -> None:
    double.answer = serve([answer], [double.feed()])
    watch = start()
    wait_until(lambda: len(double.lists()) > 2)

    assert posted.is_quiet(0.05)
    assert not watch.status.complete
    assert watch.status.error


def test_a_server_that_comes_late_is_waited_for(double: ApiDouble, posted: Posted, start: Start) -> None:
    with capture_logs() as logs:
        start()
        wait_until(lambda: len(double.lists()) > 3)
        double.answer = serve([answer_list("Service", [service("a")])], [double.feed()])
        assert names_in(posted.next()[0]) == ["shop/a"]
        wait_until(lambda: logs[-1]["event"] == "watch_regained")

    assert [log["event"] for log in logs] == ["watch_lost", "kind_listed", "watch_regained"]


@pytest.mark.parametrize("code", [403, 404])
def test_an_optional_kind_that_is_refused_counts_as_empty(
    code: int, double: ApiDouble, posted: Posted, start: Start
) -> None:
    double.answer = serve([answer_status(code, "no")], [double.feed()])
    with capture_logs() as logs:
        watch = start(OPTIONAL)
        assert posted.next() == (Listed(Kind.SERVICE_CIDR, ()),)
        wait_until(lambda: len(double.lists()) > 3)
        assert posted.is_quiet(0.05)
        assert watch.status.complete

        double.answer = serve([answer_list("ServiceCIDR", [{"metadata": {"name": "a"}}])], [double.feed()])
        assert names_in(posted.next()[0]) == ["a"]

    refused = [log for log in logs if log["event"] == "kind_refused"]
    assert [log["needs"] for log in refused] == ["list and watch"]


def test_a_server_that_refuses_everybody_while_it_starts_has_no_empty_list(
    double: ApiDouble, posted: Posted, start: Start
) -> None:
    double.answer = lambda _: answer_status(403, "no roles yet")
    start(OPTIONAL)
    wait_until(lambda: bool(double.requests))

    double.answer = serve([answer_list("ServiceCIDR", [{"metadata": {"name": "a"}}])], [double.feed()])

    assert names_in(posted.next()[0]) == ["a"]


def test_an_optional_kind_that_is_refused_later_keeps_its_state(
    double: ApiDouble, posted: Posted, start: Start
) -> None:
    feed = double.feed()
    double.answer = serve([answer_list("ServiceCIDR", [{"metadata": {"name": "a"}}])], [feed])
    start(OPTIONAL)
    posted.next()

    double.answer = lambda _: answer_status(403, "no")
    feed.give(EXPIRED)
    wait_until(lambda: len(double.requests) > 5)

    assert posted.is_quiet(0.05)


def test_an_old_server_is_asked_without_the_field_selector(double: ApiDouble, posted: Posted, start: Start) -> None:
    feed = double.feed()

    def answer(request: Request) -> Answer:
        if "fieldSelector" in request.query:
            return answer_status(400, "field label not supported: spec.clusterIP")
        return Answer(feed) if request.is_watch else answer_list("Service", [service("a")])

    double.answer = answer
    start()

    assert names_in(posted.next()[0]) == ["shop/a"]


def test_a_broken_object_is_posted_as_absent_with_its_reason(double: ApiDouble, posted: Posted, start: Start) -> None:
    broken = service("a") | {"spec": {"ports": "none"}}
    double.answer = serve([answer_list("Service", [broken, service("b")])], [double.feed()])
    start()

    (listed,) = posted.next()

    assert isinstance(listed, Listed)
    first, second = listed.objects
    assert (first.name, first.object) == ("shop/a", None)
    assert first.skipped
    assert second.object is not None


def test_an_expired_watch_after_an_outage_is_not_waited_for_as_long_as_the_outage(
    double: ApiDouble, posted: Posted, start: Start
) -> None:
    away = answer_status(503, "away")
    double.answer = serve([answer_list("Service", [])], [away, away, away, Answer([EXPIRED]), double.feed()])
    attempts: list[int] = []

    def delay(attempt: int) -> float:
        attempts.append(attempt)
        return 0.0

    start(delay=delay)
    posted.next()
    posted.next()

    assert attempts == [1, 2, 3, 1]


def test_a_watch_that_waits_tries_at_once_when_another_kind_has_reached_the_server_again(
    double: ApiDouble, posted: Posted, start: Start
) -> None:
    lists = [answer_status(503, "away"), answer_list("Service", [service("a")])]
    double.answer = serve(lists, [double.feed()])
    reunion = Reunion()
    start(delay=lambda _: 100 * PATIENCE_S, reunion=reunion)
    wait_until(lambda: len(double.lists()) == 1)

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
