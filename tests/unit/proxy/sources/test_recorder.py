"""Events that are written to the API server, and what happens where they can't be."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from endpointslice.types import NodeName
from proxy.notices import Notice
from proxy.sources.credentials import load_kubeconfig
from proxy.sources.recorder import BURST, REFILL_S, Budget, EventRecorder, render_event
from proxy.sources.transport import ApiServer
from proxy.sources.watch import Patience
from tests.unit.proxy.sources.api_double import ApiDouble, answer_json, answer_status
from tests.waiting import until

NODE = NodeName("n1")
AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
STARTING = Notice("Starting", "Start", "closeby starts", kind="Node", name="n1")
TAKEN = Notice("FailedToStartServiceHealthcheck", "Listen", "x" * 2000, "Service", "web", "shop", warning=True)


@pytest.fixture
def recorder(double: ApiDouble, tmp_path: Path) -> Iterator[EventRecorder]:
    kubeconfig = double.kubeconfig(tmp_path / "config")
    api = ApiServer(lambda: load_kubeconfig(kubeconfig))
    recorder = EventRecorder(api, NODE, Patience(delay=lambda _: 0.01))
    recorder.start()
    yield recorder
    recorder.stop()
    api.close()


def test_an_event_about_the_node_goes_into_the_default_namespace() -> None:
    path, body = render_event(STARTING, NODE, AT)

    assert path == "/apis/events.k8s.io/v1/namespaces/default/events"
    event = json.loads(body)
    assert event.pop("metadata")["namespace"] == "default"
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "reportingController": "closeby",
        "reportingInstance": "closeby-n1",
        "action": "Start",
        "reason": "Starting",
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n1"},
        "note": "closeby starts",
        "type": "Normal",
    }


def test_an_event_about_a_service_goes_into_its_namespace_and_a_long_note_is_cut() -> None:
    path, body = render_event(TAKEN, NODE, AT)

    event = json.loads(body)
    assert path == "/apis/events.k8s.io/v1/namespaces/shop/events"
    assert event["regarding"] == {"apiVersion": "v1", "kind": "Service", "name": "web", "namespace": "shop"}
    assert event["type"] == "Warning"
    assert len(event["note"]) == 1024


def test_two_events_about_one_object_have_different_names() -> None:
    names = {json.loads(render_event(STARTING, NODE, AT.replace(microsecond=n))[1])["metadata"]["name"] for n in (1, 2)}

    assert len(names) == 2


def test_a_burst_is_let_through_and_then_one_at_a_time() -> None:
    budget = Budget()
    for _ in range(BURST):
        left = budget.spend(0.0)
        assert left is not None
        budget = left

    assert budget.spend(REFILL_S / 2) is None
    assert budget.spend(REFILL_S) is not None
    assert Budget(0.0, 0.0).spend(1e9) == Budget(BURST - 1, 1e9)


def test_what_is_told_is_written(recorder: EventRecorder, double: ApiDouble) -> None:
    double.answer = lambda _: answer_json({}, 201)

    recorder.tell(STARTING)

    until(lambda: len(double.requests) == 1)
    assert json.loads(double.requests[0].body or b"")["reason"] == "Starting"


def test_a_server_that_fails_is_asked_again(recorder: EventRecorder, double: ApiDouble) -> None:
    double.answer = lambda _: answer_status(503, "not now") if len(double.requests) < 3 else answer_json({}, 201)

    recorder.tell(STARTING)
    until(lambda: len(double.requests) == 3)
    recorder.tell(TAKEN)
    until(lambda: len(double.requests) == 4)


def test_a_refusal_is_told_once_and_not_repeated(recorder: EventRecorder, double: ApiDouble) -> None:
    double.answer = lambda _: answer_status(403, "events is forbidden")

    with capture_logs() as logs:
        for _ in range(3):
            recorder.tell(STARTING)
        until(lambda: len(double.requests) == 3)
        recorder.stop()

    told = [line for line in logs if line["event"] == "event_unwritten"]
    assert [line["needs"] for line in told] == ["create on events in events.k8s.io"]


def test_more_than_can_wait_is_dropped_without_blocking(double: ApiDouble, tmp_path: Path) -> None:
    kubeconfig = double.kubeconfig(tmp_path / "config")
    recorder = EventRecorder(ApiServer(lambda: load_kubeconfig(kubeconfig)), NODE)  # not started: nobody takes them

    for _ in range(1000):
        recorder.tell(STARTING)

    assert double.requests == []
