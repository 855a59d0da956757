"""EFFECT: a cluster on a real API server, a controller, an announcer on each node; what is done to it, and asked."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from e2e.addresses import ControllerProcess, Shop, install
from e2e.announcers import FEED, AnnouncerProcess
from e2e.cluster.cluster import NAMES, Cluster
from e2e.cluster.daemon import Site
from e2e.cluster.space import PORT, Space
from e2e.controlplane.waiting import sleep_awake, wait_for
from e2e.demo.l2.judge import NOBODY, Asked, Fate, Moved, Wanted, judge_moved
from e2e.kind.steps import Steps
from e2e.lan.measure import STREAM_INTERVAL_S, Window
from e2e.world.clients import Target, Traffic, probe
from e2e.world.netns import run_ip

POOL = ("172.30.0.96/29", "fd00:172:30::60/125")  # of the nodes' own subnets
ARCHIVE = "172.30.0.110"
_EAST = {"matchLabels": {"topology.kubernetes.io/zone": "east"}}
_RIGHTS = Path(__file__).parents[3] / "deploy/components/announcer/pools-rbac.yaml"
GRACE_S = 4
_TRIES = 200
_TIMEOUT_S = 0.5
_BEFORE_S = 1.0
_OUTSIDE = "outside"
_SPACE = "shop"


class Offer(NamedTuple):
    """An address of a Service of type LoadBalancer, and what is promised of it."""

    name: str
    shows: str
    wanted: Wanted
    nth: int = 0  # of the Service's addresses


OFFERS = (
    Offer("web", "PreferClose, the pods of a DaemonSet", Wanted(frozenset(NAMES), near=True)),
    Offer("web", "the same by IPv6", Wanted(frozenset(NAMES), near=True), nth=1),
    Offer(
        "mail", "externalTrafficPolicy Local, pods on two nodes", Wanted(frozenset({"north-1", "south-1"}), near=True)
    ),
    Offer(
        "files",
        "pods on two nodes, an L2Advertisement for zone east",
        Wanted(frozenset({"north-2", "south-1"}), near=False, on=frozenset({"east-1"})),
    ),
)


class Act(NamedTuple):
    """Something that happens to the first Service's address while a client asks for it."""

    title: str
    do: Callable[["Stage"], None]
    fate: Fate
    after_s: float


class Stage:
    """All of it, running."""

    def __init__(self, cluster: Cluster, space: Space, shop: Shop) -> None:
        self.cluster = cluster
        self.announcers: dict[str, AnnouncerProcess] = {}
        self.space, self.shop = space, shop
        self.attempts = 0
        self.cut: set[str] = set()

    def start_announcer(self, node: str) -> AnnouncerProcess:
        """One on the node, in the place of another where one runs."""
        site = self.cluster.daemons[node].site
        self.announcers[node] = AnnouncerProcess(node, site.netns, site.folder, "--grace", f"{GRACE_S}s")
        return self.announcers[node]

    def open_shop(self) -> None:
        """The pool, the pods and the Services; returns when each Service has its address."""
        self.shop.pool("lan", *POOL)
        self.shop.pool("archive", f"{ARCHIVE}/32", autoAssign=False)
        self.shop.advertise("lan")
        self.shop.advertise("archive", nodeSelectors=[_EAST])
        self.space.add_daemon_set("web")
        *_, mail, files = OFFERS
        for offer in (mail, files):
            self.space.add_pods(offer.name, sorted(offer.wanted.nodes))
        single = {"type": "LoadBalancer", "ipFamilyPolicy": "SingleStack"}
        self.space.add_service("web", type="LoadBalancer", trafficDistribution="PreferClose")
        self.space.add_service("mail", **single, externalTrafficPolicy="Local")
        self.space.add_service("files", **single, loadBalancerIP=ARCHIVE)
        for offer in OFFERS:
            wait_for(lambda: len(self.shop.ips(offer.name)) > offer.nth, f"{offer.name} has an address")  # noqa: B023  # in its round

    def address(self, offer: Offer) -> str:
        """The one."""
        return self.shop.ips(offer.name)[offer.nth]

    def owners(self, vip: str) -> frozenset[str]:
        """Who announces it, by the word of every announcer whose cable isn't cut."""
        said: set[str] = set()
        for node, announcer in self.announcers.items():
            status = None if node in self.cut else announcer.status()
            if status is not None:
                said |= {one.owner for one in status.vips if one.vip == vip} or {NOBODY}
        return frozenset(said)

    def await_owner(self, vip: str) -> str:
        """The one that all agree upon."""

        def look() -> str:
            owners = self.owners(vip)
            return next(iter(owners)) if len(owners) == 1 else NOBODY

        return wait_for(look, f"one node announces {vip}")

    def ask(self, offer: Offer) -> Asked:
        """So many exchanges from outside."""
        vip = self.address(offer)
        self.await_owner(vip)
        (tally,) = probe(self.cluster.world, {_OUTSIDE: [Target("tcp", vip, PORT, _TRIES)]})[_OUTSIDE]
        self.attempts += _TRIES
        return Asked(self.owners(vip), self.cluster.nodes_of(tally), tally.failed)

    def play(self, act: Act) -> Moved:
        """Do it while the client asks a hundred times a second."""
        vip = self.address(OFFERS[0])
        before = self.await_owner(vip)
        target = Target("udp", vip, PORT, timeout_s=_TIMEOUT_S)
        with Traffic(self.cluster.world, {_OUTSIDE: [target]}, STREAM_INTERVAL_S) as traffic:
            sleep_awake(_BEFORE_S)
            began = time.monotonic()
            act.do(self)
            sleep_awake(act.after_s)
            ended = time.monotonic()
            records = traffic.stop()[_OUTSIDE]
        self.attempts += len(records)
        inside = [record for record in records if record.began <= ended - _TIMEOUT_S]
        window = Window(began, max(record.began + record.took_s for record in inside))
        return judge_moved(act.fate, (before, self.await_owner(vip)), inside, window, self.nodes_of_pods())

    def nodes_of_pods(self) -> Mapping[str, str]:
        """Each pod's node."""
        return {name: pod.node for name, pod in self.cluster.world.pods.items()}

    def owner(self) -> str:
        """Of the first Service's address."""
        return self.await_owner(self.address(OFFERS[0]))

    def set_cable(self, node: str, state: str) -> None:
        """The node's cable is in or out: up or down."""
        number = list(self.cluster.world.nodes).index(node) + 1
        run_ip({self.cluster.world.lan.netns: [f"link set port-{number} {state}"]})
        self.cut = self.cut | {node} if state == "down" else self.cut - {node}


@contextmanager
def set_stage(binary: Path, scratch: Path, steps: Steps) -> Iterator[Stage]:
    """Everything runs, and Services have addresses; all of it is removed afterwards."""

    def flags(site: Site) -> tuple[str, str]:
        return "--announcer-socket", str(site.folder / FEED)

    with ExitStack() as opened:
        with steps("a LAN of network namespaces, a real API server with its controllers, closeby on four nodes"):
            cluster = opened.enter_context(Cluster(binary, scratch, "demol2", flags))
        with steps("closeby controller, and the rights of deploy/ for it and for the proxies"):
            kubeconfig = install(cluster.plane, scratch)
            cluster.plane.kubectl("apply", "-f", str(_RIGHTS))
            controller = ControllerProcess("controller", kubeconfig, scratch, netns=cluster.world.lan.netns)
            opened.callback(controller.kill)
            wait_for(controller.leads, "the controller leads")
        stage = Stage(cluster, Space(cluster, _SPACE), Shop(cluster.api, _SPACE))
        with steps("pools and L2Advertisements, pods, three Services of type LoadBalancer: each gets its addresses"):
            stage.open_shop()
        with steps("closeby announce on each node: one of them answers for each address"):
            for node in NAMES:
                opened.callback(stage.start_announcer(node).kill)
            for offer in OFFERS:
                stage.await_owner(stage.address(offer))
        yield stage
