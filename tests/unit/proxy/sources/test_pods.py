from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from endpointslice.decode import Changed
from endpointslice.types import DaemonSetName, Kind, Pod, PodName
from proxy.sources.credentials import load_kubeconfig
from proxy.sources.pods import PodLookup
from proxy.sources.transport import ApiServer
from proxy.sources.watch import Patience
from tests.unit.proxy.sources.api_double import PATIENCE_S, ApiDouble, Posted, answer_json, answer_status
from tests.waiting import until

AGENT = PodName("kube-system/agent-x2z9q")
OWNED = {
    "kind": "Pod",
    "metadata": {
        "name": "agent-x2z9q",
        "namespace": "kube-system",
        "uid": "u1",
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "controller": True}],
    },
}


@pytest.fixture
def patience() -> Patience:
    return Patience(delay=lambda _: 0.01)


@pytest.fixture
def lookup(double: ApiDouble, posted: Posted, tmp_path: Path, patience: Patience) -> Iterator[PodLookup]:
    kubeconfig = double.kubeconfig(tmp_path / "config")
    api = ApiServer(lambda: load_kubeconfig(kubeconfig))
    lookup = PodLookup(api, posted, patience)
    lookup.start()
    yield lookup
    lookup.stop()
    lookup.join(PATIENCE_S)
    assert not lookup._thread.is_alive()  # noqa: SLF001  # it must end when told
    api.close()


def test_the_owner_of_a_pod_is_posted(lookup: PodLookup, double: ApiDouble, posted: Posted) -> None:
    double.answer = lambda _: answer_json(OWNED)
    lookup.request(AGENT, "u1")

    assert posted.next() == (Changed(Kind.POD, AGENT, Pod(AGENT, "u1", DaemonSetName("kube-system/agent"))),)
    assert double.requests[0].path == "/api/v1/namespaces/kube-system/pods/agent-x2z9q"


def test_a_pod_that_is_gone_is_posted_as_absent(lookup: PodLookup, double: ApiDouble, posted: Posted) -> None:
    double.answer = lambda _: answer_status(404, "not found")
    lookup.request(AGENT, "u1")

    assert posted.next() == (Changed(Kind.POD, AGENT, None),)


def test_asking_again_asks_the_server_once(lookup: PodLookup, double: ApiDouble, posted: Posted) -> None:
    double.answer = lambda _: answer_json(OWNED)
    for _ in range(5):
        lookup.request(AGENT, "u1")
    posted.next()
    lookup.request(AGENT, "u1")

    assert posted.is_quiet(0.1)
    assert len(double.requests) == 1


def test_a_new_pod_of_the_same_name_is_asked_for(lookup: PodLookup, double: ApiDouble, posted: Posted) -> None:
    double.answer = lambda _: answer_json(OWNED)
    lookup.request(AGENT, "u1")
    posted.next()
    lookup.request(AGENT, "u2")

    posted.next()


@pytest.mark.parametrize("code", [403, 500])
def test_a_failure_is_tried_again_and_told_once(
    code: int, lookup: PodLookup, double: ApiDouble, posted: Posted
) -> None:
    left = [answer_status(code, "no")] * 4
    double.answer = lambda _: left.pop() if left else answer_json(OWNED)
    with capture_logs() as logs:
        lookup.request(AGENT, "u1")
        (change,) = posted.next()

    assert isinstance(change, Changed)
    assert change.object is not None
    assert [log["event"] for log in logs] == ["pod_unread"]


@pytest.mark.parametrize("patience", [Patience(delay=lambda _: 0.01, owner_s=0.02)])
def test_a_pod_is_asked_for_now_and_then_until_it_is_gone(lookup: PodLookup, double: ApiDouble, posted: Posted) -> None:
    double.answer = lambda _: answer_json(OWNED)
    lookup.request(AGENT, "")
    known = posted.next()
    assert posted.next() == known

    double.answer = lambda _: answer_status(404, "not found")
    while posted.next() == known:
        pass

    assert posted.is_quiet(0.1)
    before = len(double.requests)

    def is_asked_again() -> bool:
        lookup.request(AGENT, "")  # which does nothing until it was forgotten
        return len(double.requests) > before

    until(is_asked_again)
    assert posted.next() == (Changed(Kind.POD, AGENT, None),)
