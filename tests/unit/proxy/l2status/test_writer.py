"""The writer against a server that answers as the API does, or doesn't."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from endpointslice.snapshot import EMPTY
from endpointslice.types import IP, NodeName, Service, ServiceName
from proxy.announcer.ownership import Holding, Origin, Ownership
from proxy.commits import Commit
from proxy.l2status.book import Waits
from proxy.l2status.writer import GATHER_S, StatusWriter
from proxy.notices import Notice
from proxy.sources.credentials import load_kubeconfig
from proxy.sources.transport import ApiServer
from tests.unit.proxy.sources.api_double import (
    PATIENCE_S,
    Answer,
    ApiDouble,
    Request,
    answer_json,
    answer_status,
)
from tests.waiting import until

N1 = NodeName("n1")
A, B = IP("192.0.2.1"), IP("192.0.2.2")
OURS, TWIN = "closeby.dev", "metallb.io"
WAITS = Waits(look_again_s=10 * PATIENCE_S, patience_s=0.05)
WEB = {ServiceName("shop/web"): A}
BOTH = {ServiceName("shop/web"): A, ServiceName("shop/dns"): B}


class Store:
    """Status objects by path; `refuse` may answer in its place."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.refuse: Callable[[Request], Answer | None] = lambda _: None
        self.version = 0

    def __call__(self, request: Request) -> Answer:
        return self.refuse(request) or self._answer(request)

    def _answer(self, request: Request) -> Answer:
        if request.method == "GET":
            kind = request.path.split("/")[2]
            items = [one for path, one in self.objects.items() if path.split("/")[2] == kind]
            return answer_json({"metadata": {}, "items": items})
        path = request.path.removesuffix("/status")
        if request.method == "DELETE":
            return answer_json({}) if self.objects.pop(path, None) else answer_status(404, "NotFound")
        self.version += 1
        body = json.loads(request.body or b"")
        body["metadata"]["resourceVersion"] = str(self.version)
        self.objects[path] = body
        return answer_json(body)


class World:
    def __init__(self, double: ApiDouble, folder: Path, node: NodeName = N1) -> None:
        self.double = double
        self.store = Store()
        double.answer = self.store
        self.notices: list[Notice] = []
        kubeconfig = double.kubeconfig(folder / "config")
        api = ApiServer(lambda: load_kubeconfig(kubeconfig))
        self.writer = StatusWriter(api, "metallb-system", node, self.notices.append, WAITS)

    def serve(self, services: dict[ServiceName, IP]) -> None:
        made = {
            name: Service(name, (IP("10.96.0.1"),), (), load_balancer_ips=(vip,), uid=f"uid-{name}")
            for name, vip in services.items()
        }
        self.writer.committed(Commit(replace(EMPTY, services=made), None))

    def own(self, *vips: IP) -> None:
        self.writer.hear(Ownership(tuple(Holding(vip, "eth0", Origin("taken")) for vip in vips)))

    def writes(self) -> list[Request]:
        return [one for one in self.double.requests if one.method != "GET"]

    def said(self, group: str = OURS) -> set[tuple[str, str]]:
        """Service and node of the group's objects."""
        found = [one for path, one in self.store.objects.items() if path.split("/")[2] == group]
        return {(one["status"]["serviceName"], one["status"]["node"]) for one in found}

    def settles(self) -> int:
        """The number of requests so far, once none has come for a while."""
        while True:
            before = len(self.double.requests)
            time.sleep(5 * GATHER_S)
            if len(self.double.requests) == before:
                return before


@pytest.fixture
def double() -> Iterator[ApiDouble]:
    running = ApiDouble(lambda _: answer_json({}))
    yield running
    running.close()


@pytest.fixture
def world(double: ApiDouble, tmp_path: Path) -> Iterator[World]:
    made = World(double, tmp_path)
    made.writer.start()
    yield made
    made.writer.stop()


def test_what_is_owned_is_written_once_in_both_kinds_and_then_nothing_is_asked(world: World) -> None:
    world.serve(BOTH)
    world.own(A)
    until(lambda: world.said() == world.said(TWIN) == {("web", "n1")})
    before = world.settles()

    world.own(A)
    world.serve(BOTH)

    assert world.settles() == before


def test_before_an_announcer_has_told_anything_nothing_is_asked(world: World) -> None:
    world.serve(BOTH)

    assert world.settles() == 0


def test_a_start_looks_at_what_is_there_and_writes_what_differs(
    world: World, double: ApiDouble, tmp_path: Path
) -> None:
    world.serve(BOTH)
    world.own(A, B)
    until(lambda: world.said() == world.said(TWIN) == {("web", "n1"), ("dns", "n1")})
    world.settles()
    world.writer.stop()
    objects, count = world.store.objects, len(double.requests)

    following = World(double, tmp_path)
    following.store.objects = objects
    following.writer.start()
    following.serve(BOTH)
    following.own(A)
    until(lambda: following.said() == following.said(TWIN) == {("web", "n1")})
    following.settles()
    following.writer.stop()

    writes = [one for one in double.requests[count:] if one.method != "GET"]
    assert {one.method for one in writes} == {"DELETE"}
    assert len(writes) == 2


def test_another_node_that_had_the_address_says_so_no_more(world: World, double: ApiDouble, tmp_path: Path) -> None:
    other = World(double, tmp_path, NodeName("n2"))
    double.answer = world.store
    other.writer.start()
    other.serve(WEB)
    other.own(A)
    until(lambda: world.said() == world.said(TWIN) == {("web", "n2")})
    other.writer.stop()

    world.serve(WEB)
    world.own(A)

    until(lambda: world.said() == world.said(TWIN) == {("web", "n1")})


def test_while_the_api_is_away_nothing_is_lost_and_the_newest_is_written(world: World) -> None:
    world.serve(BOTH)
    world.own(A)
    until(lambda: world.said() == world.said(TWIN) == {("web", "n1")})
    world.store.refuse = lambda _: answer_status(503, "away")

    with capture_logs() as logs:
        world.own(A, B)
        until(lambda: sum(line["event"] == "status_waits" for line in logs) == 2)
        world.own(B)
        time.sleep(3)
        world.store.refuse = lambda _: None
        until(lambda: ("dns", "n1") in world.said() & world.said(TWIN))

    assert sum(line["event"] == "status_waits" for line in logs) == 2, "once for each kind"


def test_where_a_kind_is_not_installed_that_is_said_once_and_the_other_is_written(world: World) -> None:
    world.store.refuse = lambda request: answer_status(404, "gone") if "/metallb.io/" in request.path else None
    with capture_logs() as logs:
        world.serve(BOTH)
        world.own(A)
        until(lambda: world.said() == {("web", "n1")})
        world.own(A, B)
        until(lambda: ("dns", "n1") in world.said())
        until(lambda: any(line["event"] == "status_unwritten" for line in logs))
        world.settles()
    said = [line for line in logs if line["event"] == "status_unwritten"]
    assert [line["kind"] for line in said] == ["servicel2statuses.metallb.io"]

    world.store.refuse = lambda _: None
    world.own(A)
    world.serve(WEB)

    until(lambda: world.said(TWIN) == {("web", "n1")})


def test_what_the_server_refuses_is_not_sent_again_until_it_changes(world: World) -> None:
    world.store.refuse = lambda request: (
        answer_status(422, "Invalid") if request.method == "PATCH" and "/shop/" in request.path else None
    )
    world.serve(WEB)
    world.own(A)
    until(lambda: world.said(TWIN) == {("web", "n1")})
    world.settles()
    count = len(world.writes())

    time.sleep(3)

    assert len(world.writes()) == count
    assert world.said() == set()


def test_a_service_that_goes_takes_its_object_along(world: World) -> None:
    world.serve(BOTH)
    world.own(A, B)
    until(lambda: world.said() == world.said(TWIN) == {("web", "n1"), ("dns", "n1")})

    world.serve(WEB)

    until(lambda: world.said() == world.said(TWIN) == {("web", "n1")})


def test_services_that_get_an_address_later_are_told_of(world: World) -> None:
    world.serve({})
    world.own(A)
    world.settles()
    assert world.said() == set()

    world.serve(WEB)

    until(lambda: world.said() == {("web", "n1")})


def test_an_address_that_comes_is_an_event_of_the_service(world: World) -> None:
    world.serve(BOTH)
    world.own()
    world.settles()

    world.own(B)

    until(lambda: world.notices)
    assert [(one.reason, one.namespace, one.name) for one in world.notices] == [("nodeAssigned", "shop", "dns")]
