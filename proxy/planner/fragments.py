"""The elements of one Service, and those of the node itself."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from endpointslice.addresses import family_of, pack_ip
from endpointslice.topology import Decision, Tier, Verdict, keeps_local
from endpointslice.types import CIDR, IP, Endpoint, Family, NodeName, ServiceName
from proxy.kernel.ruleset import SetId, SetName
from proxy.planner.frontends import Frontend, FrontendKind
from proxy.planner.keys import pack_index, pack_node_port, pack_range, pack_target, pack_vip
from proxy.planner.plan import PortPlan, ServicePlan
from proxy.planner.slots import assign_slots, held_slots


class Element(NamedTuple):
    """One element of one set or map."""

    set_id: SetId
    key: bytes
    data: bytes


Fragment = tuple[Element, ...]


class Label(NamedTuple):
    """What an element's counter counts: new connections of a Service port, by tier."""

    service: ServiceName
    port: str
    tier: Tier


Labels = dict[tuple[SetId, bytes], Label]


class Route(NamedTuple):
    """Where an answer goes in the table: the verdict map, the endpoints map, and the chains that draw an index."""

    ports: SetName
    endpoints: SetName
    chains: str


VIP = Route(SetName.SERVICE_PORTS, SetName.ENDPOINTS, "pick")
VIP_HERE = Route(SetName.LOCAL_SOURCE_PORTS, SetName.LOCAL_SOURCE_ENDPOINTS, "local_source_pick")
NODE_PORT = Route(SetName.NODE_PORTS, SetName.NODE_PORT_ENDPOINTS, "node_port_pick")
NODE_PORT_HERE = Route(
    SetName.LOCAL_SOURCE_NODE_PORTS, SetName.LOCAL_SOURCE_NODE_PORT_ENDPOINTS, "local_source_node_port_pick"
)
_REFUSALS = {Verdict.REJECT: b"goto refuse", Verdict.DROP: b"drop"}

Held = Mapping[SetId, Mapping[bytes, bytes]]  # what the kernel holds: indexes stay where they are


class _Writer:
    """Collects the elements of one Service."""

    def __init__(self, plan: ServicePlan, node: NodeName, held: Held) -> None:
        self.plan = plan
        self.node = node
        self.held = held
        self.elements: dict[tuple[SetId, bytes], bytes] = {}
        self.labels: Labels = {}

    def put(self, family: Family, name: SetName, key: bytes, data: bytes = b"") -> None:
        self.elements[SetId(family, name), key] = data

    def put_port(self, port: PortPlan) -> None:
        targets = {id(decision): _pack_targets(decision) for decision in _decisions(port)}
        for plan in port.frontends:
            self.put_frontend(port, plan.frontend, targets)
        for endpoint in {e.ip: e for decision in _decisions(port) for e in decision.choice.endpoints}.values():
            # Without a nodeName an endpoint may be on this node, and a pod must reach itself through its Service.
            if endpoint.node is None or endpoint.node == self.node:
                address = pack_ip(endpoint.ip)
                self.put(port.family, SetName.HAIRPIN, address + address)

    def put_frontend(self, port: PortPlan, frontend: Frontend, targets: Mapping[int, list[bytes]]) -> None:
        family = port.family
        if frontend.ip is None:
            key = pack_node_port(frontend.protocol, frontend.port)
            routes, refused = (NODE_PORT, NODE_PORT_HERE), SetName.NO_ENDPOINT_NODE_PORTS
            masquerade, masquerade_host = SetName.MASQUERADE_NODE_PORTS, SetName.HOST_MASQUERADE_NODE_PORTS
        else:
            key = pack_vip(frontend.ip, frontend.protocol, frontend.port)
            routes, refused = (VIP, VIP_HERE), SetName.NO_ENDPOINT_PORTS
            masquerade, masquerade_host = SetName.MASQUERADE_PORTS, SetName.HOST_MASQUERADE_PORTS
        is_cluster_ip = frontend.kind is FrontendKind.CLUSTER_IP
        decision = port.choice.cluster_ip if is_cluster_ip else port.choice.external
        if is_cluster_ip and frontend.ip is not None:
            self.put(family, SetName.CLUSTER_IPS, pack_ip(frontend.ip))
        if decision.verdict is Verdict.DNAT:
            self.put_dnat(port, routes[0], key, (decision, targets[id(decision)]))
        else:
            self.put(family, refused, key, _REFUSALS[decision.verdict])
        if is_cluster_ip:
            return
        here = port.choice.short_circuit
        if not keeps_local(self.plan.service):
            if decision.verdict is Verdict.DNAT:
                self.put(family, masquerade, key)
        elif here.verdict is Verdict.DNAT:
            self.put_dnat(port, routes[1], key, (here, targets[id(here)]))
            self.put(family, masquerade_host, key)

    def put_dnat(self, port: PortPlan, route: Route, key: bytes, where: tuple[Decision, list[bytes]]) -> None:
        decision, wanted = where
        set_id = SetId(port.family, route.endpoints)
        targets = assign_slots(held_slots(self.held.get(set_id, {}), key), wanted)
        for index, target in enumerate(targets):
            self.elements[set_id, key + pack_index(index)] = target
        ports = SetId(port.family, route.ports)
        self.elements[ports, key] = b"goto %s_%d" % (route.chains.encode(), len(targets))
        self.labels[ports, key] = Label(self.plan.service.name, port.port.name, decision.choice.tier)


def _decisions(port: PortPlan) -> tuple[Decision, Decision, Decision]:
    return port.choice.cluster_ip, port.choice.external, port.choice.short_circuit


def _pack_targets(decision: Decision) -> list[bytes]:
    return [pack_target(endpoint.ip, endpoint.port) for endpoint in decision.choice.endpoints]


def render_service(plan: ServicePlan, node: NodeName, held: Held) -> tuple[Fragment, Labels]:
    """The Service's elements, and what each counter of theirs counts; an endpoint that is held keeps its index."""
    writer = _Writer(plan, node, held)
    for port in plan.ports:
        writer.put_port(port)
    return tuple(Element(set_id, key, data) for (set_id, key), data in writer.elements.items()), writer.labels


class NodeRanges(NamedTuple):
    """What of the node itself the table must know."""

    addresses: frozenset[IP]  # those that NodePorts answer on
    pods: tuple[CIDR, ...]  # sources that are pods; empty: no detector
    service_cidrs: tuple[CIDR, ...]
    masquerade_all: bool


def render_node(ranges: NodeRanges, families: Iterable[Family]) -> Fragment:
    """The elements that belong to no Service."""
    return tuple(element for family in families for element in _render_family(ranges, family))


def _render_family(ranges: NodeRanges, family: Family) -> Iterator[Element]:
    for address in sorted(ranges.addresses):
        if family_of(address) is family:
            yield Element(SetId(family, SetName.NODE_ADDRESSES), pack_ip(address), b"")
    everywhere = CIDR("0.0.0.0/0" if family is Family.IPV4 else "::/0")
    pods = _of_family(ranges.pods, family)
    # Without a detector nobody's ClusterIP traffic is masqueraded; with masqueradeAll everybody's is.
    keeping: tuple[CIDR, ...] = () if ranges.masquerade_all else pods or (everywhere,)
    for name, cidrs in (
        (SetName.LOCAL_PODS, pods),
        (SetName.CLUSTER_IP_SOURCES, keeping),
        (SetName.SERVICE_CIDRS, _of_family(ranges.service_cidrs, family)),
    ):
        for cidr in cidrs:
            yield Element(SetId(family, name), pack_range(cidr), b"")


def _of_family(cidrs: Iterable[CIDR], family: Family) -> tuple[CIDR, ...]:
    """Those of the family, without those inside another: an interval set takes no overlaps (EEXIST, kernel 6.18)."""
    found: list[CIDR] = []
    for cidr in sorted(set(cidrs), key=lambda c: (pack_range(c)[: len(pack_range(c)) // 2], -_last(c))):
        if (":" in cidr) == (family is Family.IPV6) and not (found and _last(found[-1]) >= _last(cidr)):
            found.append(cidr)
    return tuple(found)


def _last(cidr: CIDR) -> int:
    packed = pack_range(cidr)
    return int.from_bytes(packed[len(packed) // 2 :], "big")


def local_endpoints(endpoints: Iterable[Endpoint], node: NodeName) -> tuple[Endpoint, ...]:
    """The endpoints that are known to be on the node."""
    return tuple(endpoint for endpoint in endpoints if endpoint.node == node)
