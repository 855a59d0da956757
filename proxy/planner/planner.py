"""The planner: touched names in, the desired elements kept up to date; only what was touched is planned again."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from endpointslice.daemonsets import Evidence, Hold, SameNode, judge_same_node
from endpointslice.snapshot import EMPTY, Snapshot, Touched
from endpointslice.topology import Place, Tier, Verdict, keeps_local
from endpointslice.types import CIDR, IP, Family, Node, PodName, ServiceName, TrafficPolicy
from proxy.planner.desired import Desired
from proxy.planner.fragments import Fragment, Held, Labels, NodeRanges, render_node, render_service
from proxy.planner.frontends import Claims, service_claims
from proxy.planner.node_ports import choose_node_addresses
from proxy.planner.plan import Rules, ServicePlan, ServiceState, plan_service
from proxy.planner.settings import Settings

NODE_OWNER = ""  # the owner of the elements that belong to no Service
NOTHING = Touched(frozenset(), frozenset(), frozenset(), frozenset(), service_cidrs=False)


class Moment(NamedTuple):
    """What planning depends on besides the Snapshot."""

    held: Held  # what the kernel holds
    host_addresses: frozenset[IP]
    now_s: float  # monotonic; for the 30 s hold of the same-node rule


class NoLocal(NamedTuple):
    """A Service port that a Local policy leaves without endpoints here."""

    policy: str  # internal or external
    family: Family


class Planner:
    """Keeps the elements of one node in step with the Snapshot."""

    def __init__(self, settings: Settings, families: Iterable[Family] = tuple(Family)) -> None:
        self.settings = settings
        self.families = tuple(families)
        self.desired = Desired()
        self.tiers: dict[ServiceName, Mapping[Tier, int]] = {}
        self.no_local: dict[ServiceName, tuple[NoLocal, ...]] = {}
        self._claims = Claims()
        self._rules = Rules(bool(settings.cluster_cidrs), settings.masquerade_all)
        self._snapshot = EMPTY
        self._place: Place | None = None  # None: nothing was planned yet
        self._holds: dict[ServiceName, Hold] = {}
        self._wanted: dict[ServiceName, PodName] = {}

    @property
    def wanted_pods(self) -> frozenset[PodName]:
        """Pods whose owner the same-node rule needs to know."""
        return frozenset(self._wanted.values())

    def next_hold_s(self) -> float | None:
        """When a hold of the same-node rule ends, so that `update` should run again; None: no clock runs."""
        return min((hold.until_s for hold in self._holds.values() if hold.until_s is not None), default=None)

    def update(self, snapshot: Snapshot, touched: Touched, moment: Moment) -> None:
        """Plan again what was touched, or everything if the node's own place changed."""
        self._snapshot = snapshot
        node = snapshot.nodes.get(self.settings.node)
        place = Place(self.settings.node, node.zone if node is not None else None)
        services = self._services_to_plan(touched, moment, everything=place != self._place)
        self._place = place
        fragments: dict[str, tuple[Fragment, Labels]] = {
            name: self._render(name, moment) for name in self._claim(services)
        }
        fragments[NODE_OWNER] = (self._render_node(node, moment), {})
        self.desired.replace(fragments)

    def _services_to_plan(self, touched: Touched, moment: Moment, *, everything: bool) -> set[ServiceName]:
        if everything:
            return {*self._snapshot.services, *self.tiers}
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

    def _claim(self, services: set[ServiceName]) -> set[ServiceName]:
        """The services, and those that won or lost a frontend to one of them."""
        others: set[ServiceName] = set()
        for name in services:
            service = self._snapshot.services.get(name)
            others |= self._claims.replace(name, service_claims(service) if service is not None else {})
        return services | others

    def _render(self, name: ServiceName, moment: Moment) -> tuple[Fragment, Labels]:
        plan = self.plan(name, moment.now_s)
        if plan is None:
            for kept in (self.tiers, self.no_local, self._holds, self._wanted):
                kept.pop(name, None)
            return (), {}
        self._remember(name, plan)
        return render_service(plan, self.settings.node, moment.held)

    def plan(self, name: ServiceName, now_s: float) -> ServicePlan | None:
        """The Service's plan as of the last update; None if there is no such Service."""
        service = self._snapshot.services.get(name)
        if service is None:
            return None
        slices = tuple(self._snapshot.slices.get(name, {}).values())
        same_node = judge_same_node(service, slices, self._evidence(), held=self._holds.get(name, Hold()), now_s=now_s)
        place = self._place or Place(self.settings.node, None)
        return plan_service(ServiceState(service, slices, same_node), place, self._rules, self._claims)

    def _evidence(self) -> Evidence:
        snapshot = self._snapshot
        ready = sum(node.ready for node in snapshot.nodes.values()) if len(snapshot.nodes) > 1 else None
        return Evidence(self.settings.same_node, self.settings.node, snapshot.daemon_sets, snapshot.pods, ready)

    def _remember(self, name: ServiceName, plan: ServicePlan) -> None:
        _keep(self._holds, name, plan.same_node)
        if plan.same_node.wanted_pod is not None:
            self._wanted[name] = plan.same_node.wanted_pod
        else:
            self._wanted.pop(name, None)
        tiers: Counter[Tier] = Counter()
        no_local: list[NoLocal] = []
        for port in plan.ports:
            choice = port.choice.cluster_ip.choice
            tiers[choice.tier] += len(choice.endpoints)
            local = plan.service.internal_traffic_policy is TrafficPolicy.LOCAL
            if local and port.choice.cluster_ip.verdict is Verdict.DROP:
                no_local.append(NoLocal("internal", port.family))
            if keeps_local(plan.service) and port.choice.external.verdict is Verdict.DROP:
                no_local.append(NoLocal("external", port.family))
        self.tiers[name] = dict(tiers)
        if no_local:
            self.no_local[name] = tuple(no_local)
        else:
            self.no_local.pop(name, None)

    def _render_node(self, node: Node | None, moment: Moment) -> Fragment:
        ranges: list[CIDR] = [cidr for entry in self._snapshot.service_cidrs.values() for cidr in entry.cidrs]
        return render_node(
            NodeRanges(
                addresses=choose_node_addresses(self.settings.node_port_addresses, node, moment.host_addresses),
                pods=self.settings.cluster_cidrs,
                service_cidrs=tuple(ranges),
                masquerade_all=self.settings.masquerade_all,
            ),
            self.families,
        )


def _keep(holds: dict[ServiceName, Hold], name: ServiceName, same_node: SameNode) -> None:
    if same_node.hold == Hold():
        holds.pop(name, None)
    else:
        holds[name] = same_node.hold


def plan_all(snapshot: Snapshot, settings: Settings) -> tuple[ServicePlan, ...]:
    """Every Service's plan on the node that the settings name, in the order of their names; for offline use."""
    planner = Planner(settings)
    planner.update(snapshot, NOTHING, Moment({}, frozenset(), 0.0))
    plans = (planner.plan(name, 0.0) for name in sorted(snapshot.services))
    return tuple(plan for plan in plans if plan is not None)
