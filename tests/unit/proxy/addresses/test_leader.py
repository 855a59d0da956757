"""Two replicas and one Lease, on a server that keeps it as the API does."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proxy.addresses.leader import Elector
from proxy.addresses.lease import Timing
from proxy.sources.credentials import load_kubeconfig
from proxy.sources.transport import ApiServer
from tests.unit.proxy.sources.api_double import Answer, ApiDouble, Request, answer_json, answer_status
from tests.waiting import until

UNHURRIED = Timing(15.0)  # a machine full of tests renews late
HURRIED = Timing(3.0)  # where a test waits for the end of it


class LeaseStore:
    """Answers as the API server: 404, 409 for another resourceVersion, or the Lease."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.lease: dict[str, dict[str, str]] | None = None
        self._version = 0
        self.broken = False

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            if self.broken:
                return answer_status(503, "not now")
            if request.method == "GET":
                return answer_json(self.lease) if self.lease else answer_status(404, "no such Lease")
            sent = json.loads(request.body or b"")
            held = self.lease["metadata"].get("resourceVersion") if self.lease else None
            if sent["metadata"].get("resourceVersion") != held:
                return answer_status(409, "it has changed")
            self._version += 1
            sent["metadata"]["resourceVersion"] = str(self._version)
            self.lease = sent
            return answer_json(sent)

    @property
    def holder(self) -> str:
        return self.lease["spec"]["holderIdentity"] if self.lease else ""


@pytest.fixture
def store() -> LeaseStore:
    return LeaseStore()


@pytest.fixture
def double(store: LeaseStore) -> Iterator[ApiDouble]:
    running = ApiDouble(store)
    yield running
    running.close()


@pytest.fixture
def start(double: ApiDouble, tmp_path: Path) -> Iterator["Start"]:
    kubeconfig = double.kubeconfig(tmp_path / "config")
    started: list[Elector] = []

    def start(identity: str, timing: Timing = UNHURRIED) -> tuple[Elector, list[bool]]:
        elector = Elector(ApiServer(lambda: load_kubeconfig(kubeconfig)), "ns", identity, timing)
        told: list[bool] = []
        elector.start(told.append)
        started.append(elector)
        return elector, told

    yield start
    for elector in started:
        elector.stop()


Start = Callable[..., tuple[Elector, list[bool]]]


def test_the_first_takes_the_lease_and_the_second_waits_until_it_is_given_back(start: Start, store: LeaseStore) -> None:
    one, told_one = start("one")
    until(one.leads)
    two, told_two = start("two")
    until(lambda: store.holder == "one")

    one.stop()

    until(two.leads)
    assert store.holder == "two"
    assert not one.leads()
    until(lambda: (told_one, told_two) == ([True], [True]))


def test_who_can_not_renew_stops_writing_and_leads_again_when_it_can(start: Start, store: LeaseStore) -> None:
    one, told = start("one", HURRIED)
    until(one.leads)

    store.broken = True
    until(lambda: not one.leads())
    until(lambda: told[-1:] == [False])
    store.broken = False

    until(one.leads)
    until(lambda: told[-1])


def test_a_lease_whose_holder_is_silent_is_taken(start: Start, store: LeaseStore) -> None:
    store.lease = {
        "metadata": {"name": "x", "resourceVersion": "9"},
        "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 1},  # type: ignore[dict-item]  # as the API has it
    }

    one, _told = start("one")

    until(one.leads)
    assert store.holder == "one"
