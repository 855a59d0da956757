"""As an administrator I label, cordon and drain Nodes, and write L2Advertisements: announcers do as they say.

What the API has reaches an announcer by way of its node's proxy, which has the rights of deploy/components/announcer.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from e2e.addresses import NAMESPACE, ROOT, install
from e2e.announcers import FEED, AnnouncerProcess
from e2e.cluster.cluster import NAMES, Cluster
from e2e.cluster.space import Space
from e2e.controlplane.waiting import wait_for
from proxy.announcer.readiness import NOT_READY_S
from proxy.announcer.status import Status, VipStatus

pytestmark = pytest.mark.e2e

NODES = ("north-1", "north-2")
VIP = "172.30.0.240"  # of the nodes' own subnet
RIGHTS = ROOT / "deploy/components/announcer/pools-rbac.yaml"
EXCLUDE = "node.kubernetes.io/exclude-from-external-load-balancers"
METALLB = {"apiVersion": "metallb.io/v1beta1"}


class Site:
    """Announcers on two nodes, and a Service that has the address."""

    def __init__(self, cluster: Cluster, space: Space) -> None:
        self.cluster = cluster
        self.api = cluster.api
        self.announcers: dict[str, AnnouncerProcess] = {}
        self._made: list[tuple[str, str]] = []
        self._space = space
        self._pods = space.add_pods("web", ["south-1"])
        space.add_service("web", type="LoadBalancer", ipFamilyPolicy="SingleStack")
        ingress = {"loadBalancer": {"ingress": [{"ip": VIP}]}}
        self.api.patch_status("Service", f"{space.name}/web", ingress)

    def start(self) -> None:
        """Proxies that tell, and announcers that hear."""
        for name in NODES:
            daemon = self.cluster.daemons[name]
            daemon.stop()
            daemon.start(flags=["--announcer-socket", str(daemon.site.folder / FEED)])
        for name in NODES:
            daemon = self.cluster.daemons[name]
            daemon.await_ready()
            flags = ("--profile", "calm", "--grace", "1s", "--leave-cordoned")
            self.announcers[name] = AnnouncerProcess(name, daemon.site.netns, daemon.site.folder, *flags)

    def apply(self, kind: str, spec: dict[str, Any]) -> None:
        """The pool, or the advertisement."""
        self.api.apply({**METALLB, "kind": kind, "metadata": {"name": "lan", "namespace": NAMESPACE}, "spec": spec})
        self._made.append((kind, f"{NAMESPACE}/lan"))

    def vip(self, name: str) -> VipStatus | None:
        """What the node's announcer says of the address."""
        status = self.status(name)
        return next((one for one in status.vips if one.vip == VIP), None) if status is not None else None

    def status(self, name: str) -> Status | None:
        """What the node's announcer says."""
        return self.announcers[name].status()

    def why(self, name: str) -> set[str]:
        """What both say of a node as a candidate."""
        vips = [vip for each in NODES if (vip := self.vip(each)) is not None]
        return {one.why for vip in vips for one in vip.candidates if one.node == name}

    def age_s(self, name: str) -> float:
        """Of what the node's announcer knows of the API."""
        status = self.status(name)
        return (status.table_age_s or 0.0) if status is not None else 0.0

    def claims(self) -> set[tuple[str, int]]:
        """Owner and epoch, as both name them; nothing of one that doesn't answer in time."""
        return {(vip.owner, vip.epoch) for name in NODES if (vip := self.vip(name)) is not None}

    def ready(self, names: Iterable[str], *, ready: bool) -> None:
        """What kubelets say, or the controller that hears none."""
        status = "True" if ready else "Unknown"
        for name in names:
            self.api.patch_status("Node", name, {"conditions": [{"type": "Ready", "status": status}]})
        for pod in self._pods if ready else ():  # those of a node that isn't Ready are made unready
            self._space.set_ready(pod, ready=True)

    def owner(self) -> str:
        """Once both name the same."""

        def look() -> str:
            owners = {vip.owner if (vip := self.vip(name)) is not None else "" for name in NODES}
            return owners.pop() if len(owners) == 1 else ""

        return wait_for(look, "both announcers name one owner")

    def await_owner(self, name: str) -> None:
        """Returns once it is this one."""
        wait_for(lambda: self.owner() == name, f"{name} owns the address")

    def await_why(self, name: str, code: str) -> None:
        """Returns once both say so of the node."""
        wait_for(lambda: self.why(name) == {code}, f"{name} is {code}")

    def close(self) -> None:
        """As before."""
        for announcer in self.announcers.values():
            announcer.kill()
        for kind, name in dict.fromkeys(self._made):
            self.api.delete(kind, name)
        self.ready(NAMES, ready=True)
        for name in NODES:
            self.api.patch("Node", name, {"metadata": {"labels": {EXCLUDE: None, "story": None}}})
            self.api.patch("Node", name, {"metadata": {"annotations": {"closeby.dev/drain": None}}})
            self.api.patch("Node", name, {"spec": {"unschedulable": None}})
            daemon = self.cluster.daemons[name]
            daemon.stop()
            daemon.start()


@pytest.fixture
def site(cluster: Cluster, space: Space) -> Iterator[Site]:
    install(cluster.plane, cluster.folder)
    cluster.plane.kubectl("apply", "-f", str(RIGHTS))
    made = Site(cluster, space)
    try:
        made.start()
        yield made
    finally:
        made.close()


def test_what_a_node_says_decides_whether_it_announces(site: Site) -> None:
    first = site.owner()
    (second,) = set(NODES) - {first}

    site.api.patch("Node", first, {"metadata": {"labels": {EXCLUDE: ""}}})
    site.await_owner(second)
    site.await_why(first, "node-excluded")
    site.api.patch("Node", first, {"metadata": {"labels": {EXCLUDE: None}}})
    site.await_why(first, "eligible")

    site.api.patch("Node", second, {"spec": {"unschedulable": True}})
    site.await_owner(first)
    site.await_why(second, "node-cordoned")
    site.api.patch("Node", second, {"spec": {"unschedulable": None}})
    site.await_why(second, "eligible")

    site.api.patch("Node", first, {"metadata": {"annotations": {"closeby.dev/drain": "true"}}})
    site.await_owner(second)
    wait_for(lambda: (status := site.status(first)) and status.drains == ("annotation",), "it says why it drains")
    site.await_why(first, "draining")


def test_advertisements_decide_which_node_announces_and_on_which_interface(site: Site) -> None:
    first = site.owner()
    (second,) = set(NODES) - {first}
    site.api.patch("Node", second, {"metadata": {"labels": {"story": "told"}}})

    site.apply("IPAddressPool", {"addresses": [f"{VIP}/32"], "autoAssign": False})
    site.await_why(first, "no-matching-advertisement")
    site.await_why(second, "no-matching-advertisement")

    site.apply("L2Advertisement", {"nodeSelectors": [{"matchLabels": {"story": "told"}}]})
    site.await_owner(second)
    site.await_why(second, "eligible")
    site.await_why(first, "no-matching-advertisement")

    site.apply("L2Advertisement", {"interfaces": ["eth7"]})
    wait_for(lambda: "unknown-interface" in site.why(second), "it has no such interface")

    preferred = {"weight": 40, "preference": {"matchLabels": {"story": "told"}}}
    site.apply("L2Advertisement", {"preferredNodeSelectors": [preferred]})
    wait_for(lambda: 40 in _preferences(site, second), "the label's weight is known")


def test_an_outage_and_kubelets_that_come_back_one_by_one_move_nothing_and_one_lost_kubelet_does(site: Site) -> None:
    owner = site.owner()
    (other,) = set(NODES) - {owner}
    site.await_why(owner, "eligible")
    claims = wait_for(lambda: found if len(found := site.claims()) == 1 else None, "both name one owner and epoch")

    site.cluster.plane.stop_apiserver()
    wait_for(lambda: all(site.age_s(name) > 2 for name in NODES), "both know that it is away")
    site.cluster.end_outage()
    site.ready(NAMES, ready=False)
    until_s = time.monotonic() + NOT_READY_S + 5
    while time.monotonic() < until_s:
        assert site.claims() <= claims
        time.sleep(1)
    for name in (other, *(name for name in NAMES if name not in NODES), owner):
        site.ready([name], ready=True)
        time.sleep(2)
    assert wait_for(site.claims, "an announcer answers") == claims

    site.ready([owner], ready=False)
    wait_for(lambda: site.owner() == other, "its address goes to the other", timeout_s=3 * NOT_READY_S)
    site.await_why(owner, "node-not-ready")


def _preferences(site: Site, name: str) -> set[int]:
    vips = [vip for each in NODES if (vip := site.vip(each)) is not None]
    return {one.preference for vip in vips for one in vip.candidates if one.node == name}
