"""The watches of an announcer's surroundings, against a server whose answers are written here."""

import queue
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from proxy.announcer.around import Surveyed
from proxy.announcer.surroundings import Surroundings
from proxy.sources.credentials import load_kubeconfig
from proxy.sources.transport import ApiServer
from proxy.sources.watch import PATIENT
from tests.unit.proxy.sources.api_double import Answer, ApiDouble, Request, answer_list, answer_status, event

PATIENCE_S = 60.0
PLURALS = {
    "nodes": "Node",
    "services": "Service",
    "ipaddresspools": "IPAddressPool",
    "l2advertisements": "L2Advertisement",
}
NODE = {"metadata": {"name": "n1", "resourceVersion": "3"}, "spec": {"unschedulable": True}}


class World:
    def __init__(self, folder: Path) -> None:
        self.refused: dict[str, int] = {}  # plural to status
        self.api = ApiDouble(self._answer)
        self.told: queue.Queue[Surveyed] = queue.Queue()
        self.nodes = self.api.feed()
        path = self.api.kubeconfig(folder / "config")
        server = ApiServer(lambda: load_kubeconfig(path, ""))
        self.watched = Surroundings(
            server, "metallb-system", self.told.put, lambda _connected: None, PATIENT._replace(refusal_s=0.0)
        )

    def _answer(self, request: Request) -> Answer:
        plural = request.path.rpartition("/")[2]
        if plural in self.refused:
            return answer_status(self.refused[plural], "no")
        if request.is_watch:
            return Answer(self.nodes if plural == "nodes" else self.api.feed())
        return answer_list(PLURALS[plural], [NODE] if plural == "nodes" else [])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.watched.stop()
    made.api.close()


def test_what_is_around_is_told_once_every_kind_was_listed_and_then_as_it_changes(world: World) -> None:
    world.watched.start()

    assert world.told.get(timeout=PATIENCE_S).nodes["n1"].cordoned
    world.nodes.give(event("MODIFIED", {"metadata": {"name": "n1", "resourceVersion": "4"}}))

    assert not world.told.get(timeout=PATIENCE_S).nodes["n1"].cordoned
    paths = {request.path for request in world.api.lists()}
    assert "/apis/metallb.io/v1beta1/namespaces/metallb-system/l2advertisements" in paths


@pytest.mark.parametrize("status", [404, 403])
def test_without_metallbs_definitions_or_the_right_to_read_them_the_rest_is_told_and_the_log_says_it_once(
    world: World, status: int
) -> None:
    world.refused = {"ipaddresspools": status, "l2advertisements": status}
    with capture_logs() as logs:
        world.watched.start()
        surveyed = world.told.get(timeout=PATIENCE_S)
        while sum(request.path.endswith("l2advertisements") for request in world.api.lists()) < 3:
            time.sleep(0.01)

    assert surveyed.nodes["n1"].cordoned
    assert [line["kind"] for line in logs if line["event"] == "kind_refused" and "L2" in line["kind"]] == [
        "L2Advertisement"
    ]


def test_a_change_that_says_nothing_new_is_not_told(world: World) -> None:
    world.watched.start()
    world.told.get(timeout=PATIENCE_S)

    again = {**NODE, "metadata": {"name": "n1", "resourceVersion": "5"}}
    world.nodes.give(event("MODIFIED", again))
    world.nodes.give(event("DELETED", again))

    assert world.told.get(timeout=PATIENCE_S).nodes == {}


def test_a_node_that_can_not_be_read_is_counted_until_it_can(world: World) -> None:
    world.watched.start()
    world.told.get(timeout=PATIENCE_S)
    assert REGISTRY.get_sample_value("closeby_advertising_objects_unusable", {"kind": "Node"}) == 0

    world.nodes.give(event("MODIFIED", {"metadata": {"name": "n1", "resourceVersion": "4"}, "spec": 3}))

    assert world.told.get(timeout=PATIENCE_S).nodes["n1"].cordoned, "its last readable version stands"
    assert REGISTRY.get_sample_value("closeby_advertising_objects_unusable", {"kind": "Node"}) == 1
    world.nodes.give(event("MODIFIED", {"metadata": {"name": "n1", "resourceVersion": "5"}}))
    world.told.get(timeout=PATIENCE_S)
    assert REGISTRY.get_sample_value("closeby_advertising_objects_unusable", {"kind": "Node"}) == 0
