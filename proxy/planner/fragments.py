"""The elements of one Service, and those of the node itself."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from endpointslice.addresses import family_of, pack_ip
from endpointslice.topology import Decision, Tier, Verdict, keeps_local
from endpointslice.types import CIDR, IP, Family, NodeName, ServiceName
from proxy.kernel.affinities import Affinity, name_affinity, pack_affinity
from proxy.kernel.ruleset import SetId, SetName
from proxy.planner.frontends import Frontend, FrontendKind
from proxy.planner.keys import pack_indexes, pack_interfaces, pack_node_port, pack_range, pack_target, pack_vip
from proxy.planner.plan import FrontendPlan, PortPlan, ServicePlan
from proxy.planner.slots import assign_slots, held_slots
from proxy.planner.source_ranges import collapse_ranges

Fragment = Mapping[SetId, Mapping[bytes, bytes]]  # the elements of one owner


class Label(NamedTuple):
    """What an element's counter counts: new connections of a Service port, by tier."""

    service: ServiceName
    port: str
    tier: Tier
    counted: bool = True  # False: the same connections are counted elsewhere, too


Labels = dict[tuple[SetId, bytes], Label]


class Route(NamedTuple):
    """Where an answer goes in the table: the verdict map, the endpoints map, and the chains that draw an index."""

    ports: SetName
    endpoints: SetName
    goto: bytes
    affinity: SetName  # with session affinity: who looks for a binding first
    bound: SetName  # and which endpoints bindings may lead to


class _Sets(NamedTuple):
    """The sets that a kind of frontend has its elements in."""

    route: Route
    route_here: Route  # for this node's own traffic, under externalTrafficPolicy Local
    refused: SetName
    masquerade: SetName
    masquerade_host: SetName
    by_source: SetName  # whose answer depends on the client
    record: SetName  # with session affinity, after DNAT: where a binding is recorded
    forget: SetName  # and where one is forgotten


_VIP_SETS = _Sets(
    Route(
        SetName.SERVICE_PORTS,
        SetName.ENDPOINTS,
        b"goto pick",
        SetName.AFFINITY_PORTS,
        SetName.BOUND_ENDPOINTS,
    ),
    Route(
        SetName.LOCAL_SOURCE_PORTS,
        SetName.LOCAL_SOURCE_ENDPOINTS,
        b"goto local_source_pick",
        SetName.LOCAL_SOURCE_AFFINITY_PORTS,
        SetName.LOCAL_SOURCE_BOUND_ENDPOINTS,
    ),
    SetName.NO_ENDPOINT_PORTS,
    SetName.MASQUERADE_PORTS,
    SetName.HOST_MASQUERADE_PORTS,
    SetName.BY_SOURCE_PORTS,
    SetName.RECORD_PORTS,
    SetName.FORGET_PORTS,
)
_NODE_PORT_SETS = _Sets(
    Route(
        SetName.NODE_PORTS,
        SetName.NODE_PORT_ENDPOINTS,
        b"goto node_port_pick",
        SetName.AFFINITY_NODE_PORTS,
        SetName.NODE_PORT_BOUND_ENDPOINTS,
    ),
    Route(
        SetName.LOCAL_SOURCE_NODE_PORTS,
        SetName.LOCAL_SOURCE_NODE_PORT_ENDPOINTS,
        b"goto local_source_node_port_pick",
        SetName.LOCAL_SOURCE_AFFINITY_NODE_PORTS,
        SetName.LOCAL_SOURCE_NODE_PORT_BOUND_ENDPOINTS,
    ),
    SetName.NO_ENDPOINT_NODE_PORTS,
    SetName.MASQUERADE_NODE_PORTS,
    SetName.HOST_MASQUERADE_NODE_PORTS,
    SetName.BY_SOURCE_NODE_PORTS,
    SetName.RECORD_NODE_PORTS,
    SetName.FORGET_NODE_PORTS,
)
_SET_IDS = {family: {name: SetId(family, name) for name in SetName} for family in Family}
_PORT_BYTES = 8  # l4proto . dport, the end of every frontend's key
_REFUSALS = {Verdict.REJECT: b"goto refuse", Verdict.DROP: b"drop"}


class Rendered(NamedTuple):
    """What one owner wants in the kernel."""

    owner: str
    elements: Fragment
    labels: Labels


Held = Mapping[SetId, Mapping[bytes, bytes]]  # what the kernel holds: indexes stay where they are


class _Writer:
    """Collects the elements of one Service."""

    def __init__(self, plan: ServicePlan, node: NodeName, held: Held) -> None:
        self.plan = plan
        self.node = node
        self.held = held
        self.sets: dict[SetId, dict[bytes, bytes]] = {}
        self.labels: Labels = {}
        self._targets: dict[int, list[bytes]] = {}  # by identity of the decision, which frontends share

    def put(self, family: Family, name: SetName, key: bytes, data: bytes = b"") -> None:
        self.sets.setdefault(_SET_IDS[family][name], {})[key] = data

    def put_port(self, port: PortPlan) -> None:
        for plan in port.frontends:
            self.put_frontend(port, plan.frontend)
            self.put_sources(port, plan)
        for decision in {id(d): d for d in _decisions(port)}.values():
            for endpoint in decision.choice.endpoints:
                # Without a nodeName an endpoint may be on this node, and a pod must reach itself through its Service.
                if endpoint.node is None or endpoint.node == self.node:
                    self.put(port.family, SetName.HAIRPIN, pack_ip(endpoint.ip) * 2)

    def put_frontend(self, port: PortPlan, frontend: Frontend) -> None:
        if frontend.ip is None:
            self.put_answers(port, frontend, _NODE_PORT_SETS, pack_node_port(frontend.protocol, frontend.port))
        else:
            self.put_answers(port, frontend, _VIP_SETS, pack_vip(frontend.ip, frontend.protocol, frontend.port))

    def put_sources(self, port: PortPlan, plan: FrontendPlan) -> None:
        frontend = plan.frontend
        if plan.sources and frontend.ip is not None:
            key = pack_vip(frontend.ip, frontend.protocol, frontend.port)
            self.put(port.family, SetName.FIREWALLED_PORTS, key)
            for cidr in plan.sources:
                self.put(port.family, SetName.ALLOWED_SOURCES, key + pack_range(cidr))

    def put_answers(self, port: PortPlan, frontend: Frontend, sets: _Sets, key: bytes) -> None:
        is_cluster_ip = frontend.kind is FrontendKind.CLUSTER_IP
        decision = port.choice.cluster_ip if is_cluster_ip else port.choice.external
        if decision.verdict is Verdict.DNAT:
            self.put_dnat(port, (sets, sets.route), key, decision)
        else:
            self.put(port.family, sets.refused, key, _REFUSALS[decision.verdict])
        if is_cluster_ip:
            if frontend.ip is not None:
                self.put(port.family, SetName.CLUSTER_IPS, pack_ip(frontend.ip))
        elif not keeps_local(self.plan.service):
            if decision.verdict is Verdict.DNAT:
                self.put_masquerade(port.family, sets.masquerade, key)
        elif port.choice.short_circuit.verdict is Verdict.DNAT:
            self.put_dnat(port, (sets, sets.route_here), key, port.choice.short_circuit)
            self.put(port.family, sets.by_source, key)
            self.put_masquerade(port.family, sets.masquerade_host, key)

    def put_masquerade(self, family: Family, name: SetName, key: bytes) -> None:
        self.put(family, name, key)
        self.put_address(family, SetName.EXTERNAL_ADDRESSES, key)

    def put_address(self, family: Family, name: SetName, key: bytes) -> None:
        """The address of a frontend's key; a NodePort's key has none, its addresses are there for good."""
        if address := key[:-_PORT_BYTES]:
            self.put(family, name, address)

    def put_dnat(self, port: PortPlan, into: tuple[_Sets, Route], key: bytes, decision: Decision) -> None:
        sets, route = into
        ids = _SET_IDS[port.family]
        wanted = self._targets.get(id(decision))
        if wanted is None:
            wanted = [pack_target(endpoint.ip, endpoint.port) for endpoint in decision.choice.endpoints]
            self._targets[id(decision)] = wanted
        targets = assign_slots(held_slots(self.held.get(ids[route.endpoints], {}), key), wanted)
        keys = pack_indexes(key, len(targets))
        self.sets.setdefault(ids[route.endpoints], {}).update(zip(keys, targets, strict=True))
        ports = ids[route.ports]
        self.sets.setdefault(ports, {})[key] = b"%s_%d" % (route.goto, len(targets))
        label = Label(self.plan.service.name, port.port.name, decision.choice.tier)
        timeout_s = self.plan.service.affinity_timeout_s
        if timeout_s is None:
            self.labels[ports, key] = label
            return
        # Who has no binding is sent on to pick an endpoint, so is counted twice.
        self.labels[ports, key] = label._replace(counted=False)
        self.labels[ids[route.affinity], key] = label
        self.put_affinity(port, (sets, route), key, wanted)

    def put_affinity(self, port: PortPlan, into: tuple[_Sets, Route], key: bytes, targets: Iterable[bytes]) -> None:
        """One binding for all frontends of a Service port in one family, which lead there by its name."""
        sets, route = into
        affinity = Affinity(port.port.protocol, self.plan.service.affinity_timeout_s or 0)
        name = name_affinity(self.plan.service.name, port.port.name, port.port.protocol)
        self.put(port.family, SetName.AFFINITIES, name, pack_affinity(affinity))
        self.put(port.family, sets.by_source, key)
        self.put_address(port.family, SetName.BINDING_ADDRESSES, key)
        self.put(port.family, SetName.BINDING_PORTS, key[-_PORT_BYTES:])
        self.put(port.family, route.affinity, key, b"jump sticky_" + name)
        self.put(port.family, sets.record, key, b"goto record_" + name)
        self.put(port.family, sets.forget, key, b"goto forget_" + name)
        bound = self.sets.setdefault(_SET_IDS[port.family][route.bound], {})
        bound.update((key + target, b"") for target in targets)


def _decisions(port: PortPlan) -> tuple[Decision, Decision, Decision]:
    return port.choice.cluster_ip, port.choice.external, port.choice.short_circuit


def render_service(plan: ServicePlan, node: NodeName, held: Held) -> Rendered:
    """The Service's elements, and what each counter of theirs counts; an endpoint that is held keeps its index."""
    writer = _Writer(plan, node, held)
    for port in plan.ports:
        writer.put_port(port)
    return Rendered(plan.service.name, writer.sets, writer.labels)


class NodeRanges(NamedTuple):
    """What of the node itself the table must know."""

    addresses: frozenset[IP]  # those that NodePorts answer on
    pods: tuple[CIDR, ...]  # sources that are pods
    service_cidrs: tuple[CIDR, ...]
    masquerade_all: bool
    interfaces: tuple[str, ...] = ()  # where pods' packets come in, such as cni0 or veth*; none of both: no detector


def render_node(ranges: NodeRanges, families: Iterable[Family]) -> Fragment:
    """The elements that belong to no Service."""
    fragment: dict[SetId, dict[bytes, bytes]] = {}
    for family in families:
        everywhere = CIDR("0.0.0.0/0" if family is Family.IPV4 else "::/0")
        pods = collapse_ranges(ranges.pods, family)
        # Without a detector nobody's ClusterIP traffic is masqueraded; with masqueradeAll everybody's is.
        keeping: tuple[CIDR, ...] = (
            () if ranges.masquerade_all else pods or (() if ranges.interfaces else (everywhere,))
        )
        keeping_interfaces = () if ranges.masquerade_all else ranges.interfaces
        own = [pack_ip(ip) for ip in sorted(ranges.addresses) if family_of(ip) is family]
        for name, keys in (
            (SetName.NODE_ADDRESSES, own),
            (SetName.EXTERNAL_ADDRESSES, own),
            (SetName.BINDING_ADDRESSES, own),
            (SetName.LOCAL_PODS, map(pack_range, pods)),
            (SetName.CLUSTER_IP_SOURCES, map(pack_range, keeping)),
            (SetName.LOCAL_INTERFACES, map(pack_interfaces, ranges.interfaces)),
            (SetName.CLUSTER_IP_INTERFACES, map(pack_interfaces, keeping_interfaces)),
            (SetName.SERVICE_CIDRS, map(pack_range, collapse_ranges(ranges.service_cidrs, family))),
        ):
            fragment[_SET_IDS[family][name]] = dict.fromkeys(keys, b"")
    return fragment
