"""The loop against a server that answers as the API does, or doesn't."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from proxy.addresses.allocate import Answer as Decided
from proxy.addresses.allocate import Classes
from proxy.addresses.controller import Controller, Outside, Place
from proxy.addresses.messages import Leading, Stop
from proxy.notices import Notice
from proxy.sources.credentials import load_kubeconfig
from proxy.sources.transport import ApiServer
from tests.unit.proxy.sources.api_double import (
    PATIENCE_S,
    Answer,
    ApiDouble,
    Feed,
    Request,
    answer_json,
    answer_list,
    answer_status,
    event,
)
from tests.waiting import until

KINDS = {
    "services": "Service",
    "namespaces": "Namespace",
    "nodes": "Node",
    "ipaddresspools": "IPAddressPool",
    "l2advertisements": "L2Advertisement",
    "servicel2statuses": "ServiceL2Status",
}


def service(name: str, version: str = "1", **status: Any) -> dict[str, Any]:  # noqa: ANN401  # the API's fields
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": version},
        "spec": {"type": "LoadBalancer", "clusterIPs": ["10.96.0.7"], "ports": [{"port": 80}]},
        "status": status,
    }


def pool(*addresses: str, version: str = "1") -> dict[str, Any]:
    return {"metadata": {"name": "p", "resourceVersion": version}, "spec": {"addresses": [*addresses]}}


class Cluster:
    """Objects by plural name; a PATCH of a status is stored. `refuse` may answer in its place."""

    def __init__(self, double: ApiDouble) -> None:
        self._double = double
        self.objects: dict[str, dict[str, Any]] = {plural: {} for plural in KINDS}
        self.feeds: dict[str, Feed] = {}
        self._since_list: dict[str, list[bytes]] = {plural: [] for plural in KINDS}
        self.refuse: Callable[[Request], Answer | None] = lambda _: None
        self.version = 100
        double.answer = self

    def add(self, plural: str, obj: dict[str, Any]) -> None:
        """There at a list, and told to a watch that stands, or to the one that follows the last list."""
        self.objects[plural][obj["metadata"]["name"]] = obj
        said = event("ADDED", obj)
        self._since_list[plural].append(said)
        if plural in self.feeds:
            self.feeds[plural].give(said)

    def __call__(self, request: Request) -> Answer:
        if request.method == "PATCH":
            return self.refuse(request) or self._store(request)
        plural = request.path.rpartition("/")[2]
        if not request.is_watch:
            self._since_list[plural].clear()
            return answer_list(KINDS[plural], [*self.objects[plural].values()])
        self.feeds[plural] = feed = self._double.feed()
        feed.give(*self._since_list[plural])
        return Answer(feed)

    def _store(self, request: Request) -> Answer:
        *_path, plural, name, _status = request.path.split("/")
        obj = self.objects[plural][name]
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        obj["status"] = obj.get("status", {}) | json.loads(request.body or b"")["status"]
        return answer_json(obj)

    def patches(self, plural: str) -> list[Request]:
        return [one for one in self._double.requests if one.method == "PATCH" and f"/{plural}/" in one.path]

    def ips(self, name: str) -> list[str]:
        ingress = self.objects["services"][name]["status"].get("loadBalancer", {}).get("ingress")
        return [part["ip"] for part in ingress or ()]


class Running:
    def __init__(self, loop: Controller, cluster: Cluster) -> None:
        self.loop = loop
        self.cluster = cluster
        self.leading = True
        self.notices: list[Notice] = []
        self.answers: list[Decided] = []


@pytest.fixture
def double() -> Iterator[ApiDouble]:
    running = ApiDouble(lambda _: answer_json({}))
    yield running
    running.close()


@pytest.fixture
def running(double: ApiDouble, tmp_path: Path) -> Iterator[Running]:
    cluster = Cluster(double)
    kubeconfig = double.kubeconfig(tmp_path / "config")
    api = ApiServer(lambda: load_kubeconfig(kubeconfig))
    made: list[Running] = []
    outside = Outside(
        api,
        lambda notice: made[0].notices.append(notice),  # noqa: PLW0108  # made below
        lambda: made[0].leading,
        lambda answer: made[0].answers.append(answer),  # noqa: PLW0108
    )
    loop = Controller(Place("metallb-system", Classes()), outside)
    made.append(Running(loop, cluster))
    thread = threading.Thread(target=loop.run)
    thread.start()
    yield made[0]
    loop.inbox.put(Stop())
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_a_service_gets_an_address_and_is_told(running: Running) -> None:
    running.cluster.add("ipaddresspools", pool("192.0.2.0/30"))
    running.cluster.add("services", service("web"))

    running.loop.inbox.put(Leading(active=True))

    until(lambda: running.cluster.ips("web") == ["192.0.2.0"])
    until(lambda: [notice.reason for notice in running.notices] == ["IPAllocated"])
    (patch,) = running.cluster.patches("services")
    assert patch.path == "/api/v1/namespaces/shop/services/web/status"
    assert patch.content_type == "application/strategic-merge-patch+json"
    until(lambda: running.cluster.patches("ipaddresspools"))
    assert running.answers


def test_a_foreign_host_that_a_node_tells_of_becomes_a_condition_of_the_service(running: Running) -> None:
    running.cluster.add("ipaddresspools", pool("192.0.2.0/30"))
    running.cluster.add("services", service("web"))
    met = {"ip": "192.0.2.0", "mac": "02:00:00:00:00:09", "interface": "eth0"}
    status = {"serviceName": "web", "serviceNamespace": "shop", "conflicts": [met]}
    metadata = {"name": "l2-x", "namespace": "shop", "resourceVersion": "3"}
    running.cluster.add("servicel2statuses", {"metadata": metadata, "status": status})

    running.loop.inbox.put(Leading(active=True))

    until(lambda: len(running.cluster.patches("services")) == 2)
    granted, conflict = (json.loads(patch.body or b"")["status"] for patch in running.cluster.patches("services"))
    assert granted["loadBalancer"]["ingress"]
    assert [one["reason"] for one in conflict["conditions"]] == ["ForeignHost"]


def test_nothing_is_decided_before_every_kind_was_listed(running: Running, double: ApiDouble) -> None:
    running.cluster.add("services", service("web", loadBalancer={"ingress": [{"ip": "192.0.2.1"}]}))
    answer = double.answer
    double.answer = lambda request: (
        answer_status(503, "not now") if request.path.endswith("ipaddresspools") else answer(request)
    )
    running.loop.inbox.put(Leading(active=True))
    until(lambda: "services" in running.cluster.feeds and "nodes" in running.cluster.feeds)
    running.cluster.add("services", service("other"))
    time.sleep(0.2)

    assert running.answers == []
    assert running.cluster.patches("services") == []


def test_who_leads_no_more_writes_nothing(running: Running) -> None:
    running.cluster.add("ipaddresspools", pool("192.0.2.0/30"))
    running.loop.inbox.put(Leading(active=True))
    until(lambda: running.cluster.patches("ipaddresspools"))
    running.leading = False

    with capture_logs() as logs:
        running.cluster.add("services", service("web"))
        until(lambda: [line for line in logs if line["event"] == "write_failed"])

    assert running.cluster.patches("services") == []
    running.leading = True
    until(lambda: running.cluster.ips("web"))


def test_an_object_that_changed_meanwhile_is_written_again(running: Running) -> None:
    running.cluster.add("ipaddresspools", pool("192.0.2.0/30"))
    running.cluster.add("services", service("web"))
    running.cluster.refuse = lambda _: (
        answer_status(409, "changed") if len(running.cluster.patches("services")) < 2 else None
    )

    running.loop.inbox.put(Leading(active=True))

    until(lambda: running.cluster.ips("web") == ["192.0.2.0"])


def test_a_server_that_fails_is_asked_again_and_the_answer_stays_the_same(running: Running) -> None:
    running.cluster.add("ipaddresspools", pool("192.0.2.0/30"))
    for name in ("a", "b"):
        running.cluster.add("services", service(name))
    running.cluster.refuse = lambda _: (
        answer_status(503, "not now") if len(running.cluster.patches("services")) < 4 else None
    )

    running.loop.inbox.put(Leading(active=True))

    until(lambda: (running.cluster.ips("a"), running.cluster.ips("b")) == (["192.0.2.0"], ["192.0.2.1"]))


def test_what_the_server_refuses_for_good_is_not_sent_again_and_stops_nobody(running: Running) -> None:
    running.cluster.add("ipaddresspools", pool("192.0.2.0/30"))
    for name in ("a", "b"):
        running.cluster.add("services", service(name))
    running.cluster.refuse = lambda request: answer_status(422, "no") if "/a/" in request.path else None

    running.loop.inbox.put(Leading(active=True))

    until(lambda: running.cluster.ips("b") == ["192.0.2.1"])
    running.cluster.add("services", service("c"))
    until(lambda: running.cluster.ips("c"))
    assert len([one for one in running.cluster.patches("services") if "/a/" in one.path]) == 1
    running.cluster.refuse = lambda _: None
    running.cluster.add("services", service("a", version="300"))
    until(lambda: running.cluster.ips("a") == ["192.0.2.0"])


def test_a_broken_pool_is_told_and_a_second_term_begins_with_new_lists(running: Running) -> None:
    running.cluster.add("ipaddresspools", pool("x"))
    running.loop.inbox.put(Leading(active=True))
    until(lambda: [notice.reason for notice in running.notices] == ["Invalid"])
    assert "neither a network nor a range" in running.notices[0].note

    running.loop.inbox.put(Leading(active=False))
    running.cluster.objects["ipaddresspools"]["p"] = pool("192.0.2.0/30", version="200")
    running.cluster.objects["services"]["web"] = service("web")
    running.loop.inbox.put(Leading(active=True))

    until(lambda: running.cluster.ips("web") == ["192.0.2.0"])


def test_an_error_of_ours_ends_nothing(running: Running) -> None:
    failures = iter([True])

    class Picky(list[Decided]):
        def append(self, answer: Decided) -> None:
            if next(failures, False):
                raise RuntimeError("an error of ours")
            super().append(answer)

    running.answers = Picky()
    running.cluster.add("ipaddresspools", pool("192.0.2.0/30"))
    running.cluster.add("services", service("web"))

    with capture_logs() as logs:
        running.loop.inbox.put(Leading(active=True))
        until(lambda: running.cluster.ips("web") == ["192.0.2.0"])

    assert [line["event"] for line in logs].count("loop_failed") == 1
