"""The planner: touched names in, the desired elements kept up to date; only what was touched is planned again."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple, TypeVar

from endpointslice.addresses import family_of
from endpointslice.daemonsets import SAME_NODE_OFF, Evidence, Hold, judge_same_node
from endpointslice.snapshot import EMPTY, Snapshot, Touched
from endpointslice.topology import Place, Tier
from endpointslice.types import IP, Family, Node, PodName, ServiceName, Slice, SliceName
from proxy.planner.desired import Desired
from proxy.planner.detector import Detector, choose_detector
from proxy.planner.fragments import Held, NodeRanges, Rendered, render_node, render_service
from proxy.planner.frontends import Claims, service_claims
from proxy.planner.node_ports import choose_node_addresses
from proxy.planner.plan import Rules, ServicePlan, ServiceState, plan_service
from proxy.planner.settings import Settings
from proxy.planner.totals import NoLocal, Totals, count_no_local, count_tiers

T = TypeVar("T")

_NO_HOLD = Hold()
_NO_SLICES: Mapping[SliceName, Slice] = {}
NODE_OWNER = ""  # the owner of the elements that belong to no Service
NOTHING = Touched(frozenset(), frozenset(), frozenset(), frozenset(), service_cidrs=False)


class Moment(NamedTuple):
    """What planning depends on besides the Snapshot."""

    held: Held  # what the kernel holds
    host_addresses: frozenset[IP]
    now_s: float  # monotonic; for the 30 s hold of the same-node rule


class Planner:
    """Keeps the elements of one node in step with the Snapshot."""

    def __init__(self, settings: Settings, families: Iterable[Family] = tuple(Family)) -> None:
        self.settings = settings
        self.families = tuple(families)
        self.desired = Desired()
        self.tiers: Totals[Tier] = Totals()  # endpoints in use for the ClusterIP
        self.no_local: Totals[NoLocal] = Totals()
        self._claims = Claims()
        self._detector = choose_detector(settings, None)
        self._rules = read_rules(self._detector, settings, None)
        self._snapshot = EMPTY
        self._place: Place | None = None  # None: nothing was planned yet
        self._evidence = judge_by(settings, EMPTY)
        self._ranges: NodeRanges | None = None
        self._holds: dict[ServiceName, Hold] = {}
        self._wanted: dict[ServiceName, PodName] = {}

    @property
    def wanted_pods(self) -> frozenset[PodName]:
        """Pods whose owner the same-node rule needs to know."""
        return frozenset(self._wanted.values())

    @property
    def node_addresses(self) -> frozenset[IP]:
        """The addresses that NodePorts answer on, as of the last update."""
        return self._ranges.addresses if self._ranges is not None else frozenset()

    def next_hold_s(self) -> float | None:
        """When a hold of the same-node rule ends, so that `update` should run again; None: no clock runs."""
        return min((hold.until_s for hold in self._holds.values() if hold.until_s is not None), default=None)

    def update(self, snapshot: Snapshot, touched: Touched, moment: Moment) -> None:
        """Plan again what was touched, or everything if the node's own place changed.

        If it raises, this planner is of no use any more: a new one plans everything.
        """
        before, self._snapshot = self._snapshot, snapshot
        node = snapshot.nodes.get(self.settings.node)
        place = Place(self.settings.node, node.zone if node is not None else None)
        # Pods' networks that go are those of a Node that is about to go: the last ones stay.
        self._detector = choose_detector(self.settings, node) if node is not None and node.pod_cidrs else self._detector
        rules = read_rules(self._detector, self.settings, node)
        everything = place != self._place or rules != self._rules
        self._place, self._rules = place, rules
        self._evidence = judge_by(self.settings, snapshot)
        services = self._claim(self._services_to_plan(touched, moment, everything=everything), before)
        ranges = self._choose_ranges(node, moment)
        if ranges == self._ranges:
            self.desired.replace(services, self._render(services, moment))
        else:
            self._ranges = ranges
            node_part = Rendered(NODE_OWNER, render_node(ranges, self.families), {})
            self.desired.replace({NODE_OWNER, *services}, chain((node_part,), self._render(services, moment)))

    def _services_to_plan(self, touched: Touched, moment: Moment, *, everything: bool) -> set[ServiceName]:
        if everything:
            return {*self._snapshot.services, *self._claims.services}
        services = set(touched.services)
        spaces = {name.partition("/")[0] for name in (*touched.daemon_sets, *touched.pods)}
        if spaces or touched.nodes:
            services.update(
                name
                for name, service in self._snapshot.services.items()
                if service.traffic_distribution is not None and (touched.nodes or name.partition("/")[0] in spaces)
            )
        services.update(
            name for name, hold in self._holds.items() if hold.until_s is not None and hold.until_s <= moment.now_s
        )
        return services

    def _claim(self, services: set[ServiceName], before: Snapshot) -> set[ServiceName]:
        """The services, and those that won or lost a frontend to one of them."""
        others: set[ServiceName] = set()
        for name in services:
            service = self._snapshot.services.get(name)
            if service is not before.services.get(name):
                others |= self._claims.replace(name, service_claims(service) if service is not None else {})
        return services | others

    def _render(self, services: Iterable[ServiceName], moment: Moment) -> Iterator[Rendered]:
        for name in services:
            plan = self.plan(name, moment.now_s)
            self._remember(name, plan)
            if plan is not None:
                yield render_service(plan, self.settings.node, moment.held)

    def plan(self, name: ServiceName, now_s: float) -> ServicePlan | None:
        """The Service's plan as of the last update; None if there is no such Service."""
        service = self._snapshot.services.get(name)
        if service is None:
            return None
        slices = tuple(self._snapshot.slices.get(name, _NO_SLICES).values())
        same_node = judge_same_node(service, slices, self._evidence, held=self._holds.get(name, _NO_HOLD), now_s=now_s)
        place = self._place or Place(self.settings.node, None)
        return plan_service(ServiceState(service, slices, same_node), place, self._rules, self._claims)

    def _remember(self, name: ServiceName, plan: ServicePlan | None) -> None:
        same_node = plan.same_node if plan is not None else SAME_NODE_OFF
        _keep(self._holds, name, same_node.hold if same_node.hold != _NO_HOLD else None)
        _keep(self._wanted, name, same_node.wanted_pod)
        self.tiers.replace(name, count_tiers(plan) if plan is not None else {})
        self.no_local.replace(name, count_no_local(plan) if plan is not None else {})

    def _choose_ranges(self, node: Node | None, moment: Moment) -> NodeRanges:
        return NodeRanges(
            addresses=choose_node_addresses(
                self.settings.node_port_addresses, node, moment.host_addresses, self.settings.own_addresses
            ),
            pods=self._detector.pods,
            interfaces=self._detector.interfaces,
            service_cidrs=tuple(cidr for entry in self._snapshot.service_cidrs.values() for cidr in entry.cidrs),
            masquerade_all=self.settings.masquerade_all,
        )


def _keep(table: dict[ServiceName, T], name: ServiceName, value: T | None) -> None:
    if value is None:
        table.pop(name, None)
    else:
        table[name] = value


def read_rules(detector: Detector, settings: Settings, node: Node | None) -> Rules:
    """What of the settings and the Node changes answers."""
    ips = (*settings.own_addresses, *(node.addresses if node is not None else ()))
    primary = {family_of(ip): ip for ip in reversed(ips)}
    return Rules(bool(detector.families), settings.masquerade_all, detector.families, tuple(primary.values()))


def judge_by(settings: Settings, snapshot: Snapshot) -> Evidence:
    """What the same-node rule may look at; a source that shows no node but our own can't tell how many are Ready."""
    ready = sum(node.ready for node in snapshot.nodes.values()) if len(snapshot.nodes) > 1 else None
    return Evidence(settings.same_node, settings.node, snapshot.daemon_sets, snapshot.pods, ready)


def plan_all(snapshot: Snapshot, settings: Settings) -> tuple[ServicePlan, ...]:
    """Every Service's plan on the node that the settings name, in the order of their names; for offline use."""
    planner = Planner(settings)
    planner.update(snapshot, NOTHING, Moment({}, frozenset(), 0.0))
    plans = (planner.plan(name, 0.0) for name in sorted(snapshot.services))
    return tuple(plan for plan in plans if plan is not None)
