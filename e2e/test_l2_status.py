"""As an operator I see from the API which node answers for an address, since when another does, and who else does."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from e2e.addresses import NAMESPACE, ROOT
from e2e.announcers import FEED, AnnouncerProcess
from e2e.cluster.cluster import Cluster
from e2e.cluster.space import Space
from e2e.controlplane.api import ApiError, Object
from e2e.controlplane.objects import add_namespace
from e2e.controlplane.waiting import wait_for
from e2e.world.netns import run_ip
from proxy.l2status.book import LOOK_AGAIN_S

pytestmark = pytest.mark.e2e

NODES = ("north-1", "north-2", "south-1")
V4, V6 = "172.30.0.240", "fd00:172:30::f0"
IDLE_S = LOOK_AGAIN_S + 5
PATIENCE_S = 90.0
OURS = "/apis/closeby.dev/v1beta1/servicel2statuses"
TWIN = f"/apis/metallb.io/v1beta1/namespaces/{NAMESPACE}/servicel2statuses"


def metallbs_definition() -> Object:
    """Of ServiceL2Status, as far as its fields are published: what doesn't change is refused to change."""
    fixed = {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    interfaces = {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}
    status = {"node": fixed, "serviceName": fixed, "serviceNamespace": fixed, "interfaces": interfaces}
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object"}, "status": {"type": "object", "properties": status}},
    }
    version = {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"kind": "ServiceL2Status", "plural": "servicel2statuses", "singular": "servicel2status"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "servicel2statuses.metallb.io"},
        "spec": {"group": "metallb.io", "scope": "Namespaced", "names": names, "versions": [version]},
    }


class Story:
    """Announcers on three nodes, with proxies that know of them."""

    def __init__(self, cluster: Cluster, space: Space, folder: Path) -> None:
        self.cluster = cluster
        self.space = space
        self._folder = folder
        self._running: dict[str, AnnouncerProcess] = {}

    def start(self) -> None:
        """All of it runs."""
        for node in NODES:
            folder = self._folder / node
            daemon = self.cluster.daemons[node]
            daemon.stop()
            daemon.start(flags=["--announcer-socket", str(folder / FEED)])
            netns = self.cluster.world.host(node).netns
            flags = ("--profile", "calm", "--metrics-bind-address", "")
            self._running[node] = AnnouncerProcess(node, netns, folder, *flags)
        for node in NODES:
            self.cluster.daemons[node].await_ready()

    def lose(self, node: str) -> None:
        """Its announcer and its proxy end at once."""
        self._running[node].kill()
        self.cluster.daemons[node].kill()

    def close(self) -> None:
        """The cluster is as it was."""
        for announcer in self._running.values():
            announcer.kill()
        for node in NODES:
            daemon = self.cluster.daemons[node]
            daemon.kill()
            daemon.start()
        for node in NODES:
            self.cluster.daemons[node].await_ready()

    def serve(self, name: str, *vips: str) -> None:
        """A Service with these addresses, as a controller would have given them."""
        self.space.add_service(name, type="LoadBalancer", selector={"app": "web"})
        ingress = [{"ip": vip, "ipMode": "VIP"} for vip in vips]
        self.cluster.api.patch_status("Service", f"{self.space.name}/{name}", {"loadBalancer": {"ingress": ingress}})

    def objects(self, path: str = OURS) -> list[Object]:
        """Those about Services of this story."""
        found: list[Object] = self.cluster.api.request("GET", path)["items"]
        return [one for one in found if one.get("status", {}).get("serviceNamespace") == self.space.name]

    def nodes(self, path: str = OURS) -> dict[str, list[str]]:
        """The addresses that each node says it announces; of MetalLB's kind, its interfaces."""
        part, name = ("addresses", "ip") if path == OURS else ("interfaces", "name")
        found: dict[str, list[str]] = {}
        for one in self.objects(path):  # of two Services a node has two
            found.setdefault(one["status"]["node"], []).extend(each[name] for each in one["status"][part])
        return {node: sorted(parts) for node, parts in found.items()}

    def told(self) -> list[str]:
        """All addresses that some node says it announces."""
        return sorted(vip for vips in self.nodes().values() for vip in vips)

    def events(self, name: str, reason: str) -> list[str]:
        """The notes of the Service's Events."""
        found = self.cluster.api.items("Event", self.space.name)
        about = (one for one in found if (one.get("regarding") or one.get("involvedObject") or {}).get("name") == name)
        return [one.get("note") or one.get("message", "") for one in about if one["reason"] == reason]

    def requests(self) -> float:
        """How many the API server has had for either kind; not watches, which proxies have none of, and controllers."""
        text = self.cluster.api.text("/metrics")
        lines = [line for line in text.splitlines() if line.startswith("apiserver_request_total{")]
        ours = [line for line in lines if 'resource="servicel2statuses"' in line and 'verb="WATCH"' not in line]
        return sum(float(line.rpartition(" ")[2]) for line in ours)

    def await_owner(self, *vips: str) -> str:
        """The node that announces them all, and says so."""

        def look() -> str:
            found = self.nodes()
            return next(iter(found)) if list(found.values()) == [sorted(vips)] else ""

        return wait_for(look, f"one node says that it announces {vips}", timeout_s=PATIENCE_S)


def is_served(cluster: Cluster, path: str) -> bool:
    """Whether the API server has made room for a new kind."""
    try:
        cluster.api.request("GET", path)
    except ApiError:
        return False
    return True


@pytest.fixture
def story(cluster: Cluster, space: Space, tmp_path: Path) -> Iterator[Story]:
    add_namespace(cluster.api, NAMESPACE)
    rights = (f"components/announcer/{part}-rbac" for part in ("pools", "status"))
    for part in ("crds/closeby/servicel2statuses", *rights):
        cluster.plane.kubectl("apply", "--validate=strict", "-f", str(ROOT / "deploy" / f"{part}.yaml"))
    cluster.plane.kubectl("apply", "-f", "-", text=yaml.safe_dump(metallbs_definition()))
    for group in ("closeby.dev", "metallb.io"):
        crd = f"crd/servicel2statuses.{group}"
        cluster.plane.kubectl("wait", "--for=condition=Established", crd, "--timeout=60s")
    wait_for(lambda: is_served(cluster, OURS) and is_served(cluster, TWIN), "both kinds are served")
    made = Story(cluster, space, tmp_path)
    with ExitStack() as closing:
        closing.callback(made.close)
        yield made


def test_an_address_is_told_of_by_its_node_in_both_kinds_and_with_the_service_all_of_it_goes(story: Story) -> None:
    story.space.add_pods("web", ["north-1"])
    story.start()
    story.serve("web", V4)
    owner = story.await_owner(V4)

    wait_for(lambda: story.nodes(TWIN) == {owner: ["eth0"]}, "MetalLB's kind says so, too", timeout_s=PATIENCE_S)
    shown = story.cluster.plane.kubectl("-n", story.space.name, "get", "servicel2statuses.closeby.dev")
    assert [*shown.splitlines()[1].split()[1:5]] == ["web", owner, V4, "eth0"]
    (twin,) = story.objects(TWIN)
    assert twin["metadata"]["labels"] == {
        "metallb.io/node": owner,
        "metallb.io/service-name": "web",
        "metallb.io/service-namespace": story.space.name,
    }
    said = f'announcing from node "{owner}" with protocol "layer2": {V4} on eth0'

    def notes() -> list[str]:  # nodes that came up apart may have had it one after the other
        return [note for note in story.events("web", "nodeAssigned") if note.startswith(said)]

    assert len(wait_for(notes, "an Event says so")) == 1

    story.cluster.api.delete("Service", f"{story.space.name}/web")

    wait_for(lambda: not story.objects() and not story.objects(TWIN), "nothing is left", timeout_s=PATIENCE_S)


def test_a_lost_owner_is_replaced_in_what_is_told(story: Story) -> None:
    story.space.add_pods("web", ["east-1"])
    story.start()
    story.serve("web", V4)
    owner = story.await_owner(V4)

    story.lose(owner)
    wait_for(lambda: [*story.nodes()] not in ([owner], []), "another node says that it does", timeout_s=PATIENCE_S)
    heir = story.await_owner(V4)

    wait_for(lambda: [*story.nodes(TWIN)] == [heir], "MetalLB's kind says so, too", timeout_s=PATIENCE_S)
    moved = f'announcing from node "{heir}" with protocol "layer2": {V4} on eth0; before from node "{owner}", which'
    wait_for(lambda: any(one.startswith(moved) for one in story.events("web", "nodeAssigned")), "an Event says so")


def test_while_nothing_changes_nothing_is_asked_or_written(story: Story) -> None:
    story.space.add_pods("web", ["north-1"])
    story.start()
    story.serve("web", V4, V6)
    wait_for(lambda: story.told() == [V4, V6], "both are told", timeout_s=PATIENCE_S)
    wait_for(lambda: story.nodes(TWIN).keys() == story.nodes().keys(), "in both kinds", timeout_s=PATIENCE_S)
    time.sleep(IDLE_S)  # until what the announcers' start made has settled

    def is_idle() -> bool:
        before, versions = story.requests(), _versions(story)
        time.sleep(IDLE_S)
        asked = story.requests() - before  # of which two by this test
        return _versions(story) == versions and asked == 2

    # Controllers ask as well, now and then: for a namespace that goes, and when they meet a new kind.
    wait_for(is_idle, f"{IDLE_S:g} s without a request", timeout_s=3 * IDLE_S)


def _versions(story: Story) -> dict[str, str]:
    found = [*story.objects(), *story.objects(TWIN)]
    return {one["apiVersion"] + one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in found}


def test_an_api_server_that_is_away_moves_nothing_and_later_says_what_is(story: Story) -> None:
    story.space.add_pods("web", ["east-1"])
    story.start()
    story.serve("web", V4)
    story.serve("other", V6)
    wait_for(lambda: story.told() == [V4, V6], "both are told", timeout_s=PATIENCE_S)
    before = story.nodes()

    story.cluster.plane.stop_apiserver()
    time.sleep(5)
    owner = next(node for node, vips in before.items() if V4 in vips)
    story.lose(owner)
    time.sleep(20)  # within it another node takes what that one had
    story.cluster.end_outage()
    wait_for(lambda: is_served(story.cluster, OURS), "the kind is served again")

    def is_told() -> bool:
        return owner not in story.nodes() and story.told() == [V4, V6]

    wait_for(is_told, "what happened meanwhile is told", timeout_s=PATIENCE_S)


def test_an_address_that_another_host_has_is_told_of_and_taken_once_it_leaves(story: Story) -> None:
    story.space.add_pods("web", ["north-1"])
    outside = story.cluster.world.outside
    run_ip({outside.netns: [f"address add {V4}/32 dev eth0"]})
    try:
        story.start()
        story.serve("web", V4)

        def conflicts() -> list[str]:
            return [one["mac"] for found in story.objects() for one in found["status"]["conflicts"]]

        # While nodes come up the one that would take it may change, and the one before tells of it a moment longer.
        wait_for(lambda: len(conflicts()) == 1, "one node says who has it", timeout_s=PATIENCE_S)
        (mac,) = set(wait_for(conflicts, "and goes on saying so"))
        assert all(vips == [] for vips in story.nodes().values())
        said = f"the host {mac} on eth0, which is no node, answers for {V4}: it isn't announced until that ends"
        wait_for(lambda: set(story.events("web", "AddressConflict")) == {said}, "an Event says so")
        assert story.objects(TWIN) == []
    finally:
        run_ip({outside.netns: [f"address del {V4}/32 dev eth0"]})

    wait_for(lambda: [V4] in story.nodes().values(), "a node takes it", timeout_s=PATIENCE_S)
