"""Worlds by chance: equal seeds give equal worlds. Pure.

Not made, since Kubernetes leaves it open: two endpoints of one Service port with one address that both don't terminate
(kube-proxy takes one by map order). Two Services with one address and port are left open, too, but wanted.py knows
what closeby makes of them.
"""

from random import Random

from msgspec.structs import replace

from e2e.differential.claim import claim_one_address
from e2e.differential.model import (
    BalancerIP,
    DaemonSetSpec,
    EndpointSpec,
    PortSpec,
    ServiceSpec,
    SlicePortSpec,
    SliceSpec,
    State,
    World,
)
from e2e.differential.mutate import mutate
from e2e.differential.places import (
    HIDING_LABELS,
    NODE,
    NODES,
    SOURCE_RANGES,
    TARGET_PORTS,
    ZONES,
    cluster_ip,
    endpoint_pool,
    vip,
)

_MOST_SERVICES = 4
_CHANGES = (0, 0, 1, 1, 2, 3)
_MOST_ENDPOINTS = 5
_FIRST_NODE_PORT = 30000  # the API server itself allots from 30086 on, first
_CLUSTER_IPS = 2000
_CLAIM, _STICKY, _DAEMON_SET, _HIDDEN, _SCTP = 0.15, 0.15, 0.2, 0.03, 0.1  # how often
_NUMBERS = 16  # addresses and ports of one world's Service


def make_world(seed: int) -> World:
    """The world of that seed."""
    rng = Random(seed)
    zone = rng.choice((*ZONES, *ZONES, None))
    services = tuple(make_service(rng, seed, number) for number in range(rng.randint(1, _MOST_SERVICES)))
    if rng.random() < _CLAIM:
        services = claim_one_address(rng, services)
    states = [State(zone, services)]
    for _ in range(rng.choice(_CHANGES)):
        states.append(mutate(rng, states[-1]))
    return World(seed, tuple(states))


def make_service(rng: Random, seed: int, number: int) -> ServiceSpec:
    """Service `number` of a world, 0 and up; no other Service of the world shares a VIP and port with it."""
    kind = rng.choice(("ClusterIP", "NodePort", "LoadBalancer"))
    families = rng.choice(((False,), (True,), (False, True), (False, True), (True, False)))
    ports = _ports(rng, number, with_node_ports=kind != "ClusterIP")
    distribution = rng.choice((None, None, "PreferClose", "PreferSameZone", "PreferSameNode"))
    external_ips = _vips(rng, number, families, rng.choice((0, 0, 0, 1, 2)))
    hints = rng.choice(("none", "zones", "zones", "nodes", "both", "any"))
    reachable = kind != "ClusterIP" or bool(external_ips)
    service = ServiceSpec(
        name=f"w{seed % 1_000_000}-{number}",
        type=kind,
        cluster_ips=tuple(_cluster_ip(seed, number, ipv6=ipv6) for ipv6 in families),
        ports=ports,
        slices=tuple(piece for ipv6 in sorted(families) for piece in _slices(rng, ports, hints, ipv6=ipv6)),
        internal_policy=rng.choice(("Cluster", "Cluster", "Local")),
        external_policy=rng.choice(("Cluster", "Local")) if reachable else "Cluster",
        distribution=distribution,
        external_ips=external_ips,
        balancer_ips=_balancer_ips(rng, number, families) if kind == "LoadBalancer" else (),
        source_ranges=make_source_ranges(rng) if kind == "LoadBalancer" else (),
    )
    return _make_special(rng, service)


def _make_special(rng: Random, service: ServiceSpec) -> ServiceSpec:
    """Affinity, a DaemonSet or a hiding label, for some; affinity mostly without policies, so that it binds for all."""
    chance = rng.random()
    if chance < _STICKY:
        policies = ("Cluster", "Cluster") if rng.random() < 0.7 else (service.internal_policy, service.external_policy)
        return replace(service, sticky=True, internal_policy=policies[0], external_policy=policies[1])
    if chance < _STICKY + _DAEMON_SET:
        return _back_by_daemon_set(rng, service)
    if chance < _STICKY + _DAEMON_SET + _HIDDEN:
        return replace(service, label=rng.choice(HIDING_LABELS))
    return service


def _back_by_daemon_set(rng: Random, service: ServiceSpec) -> ServiceSpec:
    """Every endpoint a pod of the DaemonSet's; it covers its nodes, or never can, or this node's pods are others'.

    Numbers between would leave open whether the rule is held on for its 30 s.
    """
    slices = tuple(
        replace(piece, endpoints=tuple(_make_pod(rng, service.name, one) for one in piece.endpoints))
        for piece in service.slices
    )
    backing = DaemonSetSpec(desired=rng.choice((2, 2, 2, 50)), owns=rng.random() < 0.85)
    distribution = rng.choice(("PreferClose", "PreferClose", "PreferSameZone", service.distribution))
    return replace(service, slices=slices, daemon_set=backing, distribution=distribution)


def _make_pod(rng: Random, service: str, endpoint: EndpointSpec) -> EndpointSpec:
    """A pod of the DaemonSet's; on this node mostly a ready one, without node hints, which come before the rule."""
    endpoint = replace(endpoint, pod=_pod_name(service, endpoint.ip))
    if endpoint.terminating or endpoint.node != NODE or rng.random() < 0.3:
        return endpoint
    return replace(endpoint, ready=True, for_nodes=())


def _pod_name(service: str, ip: str) -> str:
    """As the DaemonSet's controller names pods: five letters and digits after its own name."""
    return f"{service}-{ip.replace(':', '.').rpartition('.')[2]:0>3}{'v6' if ':' in ip else 'v4'}"


def make_source_ranges(rng: Random) -> tuple[str, ...]:
    """None mostly; else one or two, of one family or of both."""
    if rng.random() < 0.6:
        return ()
    families = rng.choice(((0,), (1,), (0, 1), (0, 1)))
    return tuple(pair[family] for pair in rng.sample(SOURCE_RANGES, k=rng.choice((1, 1, 2))) for family in families)


def _cluster_ip(seed: int, number: int, *, ipv6: bool) -> str:
    return cluster_ip((seed * _MOST_SERVICES + number) % _CLUSTER_IPS, ipv6=ipv6)


def _ports(rng: Random, number: int, *, with_node_ports: bool) -> tuple[PortSpec, ...]:
    """One to three; a single one may have no name; TCP and UDP may share a number."""
    count = rng.choice((1, 1, 2, 3))
    names = rng.choice((("",), ("http",))) if count == 1 else ("http", "dns", "more")[:count]
    same_number = rng.random() < 0.3
    made = []
    for index, name in enumerate(names):
        protocol = ("TCP", "UDP")[index % 2] if same_number else rng.choice(("TCP", "TCP", "UDP"))
        port = 80 + 10 * number + (2 if index > 1 else 0 if same_number else index)
        node_port = _FIRST_NODE_PORT + number * _NUMBERS + index if with_node_ports and rng.random() < 0.9 else 0
        made.append(PortSpec(name, protocol, port, node_port))
    if all(names) and rng.random() < _SCTP:
        node_port = made[0].node_port and _FIRST_NODE_PORT + number * _NUMBERS + 4
        made.append(PortSpec("sctp", "SCTP", made[0].port, node_port))
    return tuple(made)


def _vips(rng: Random, number: int, families: tuple[bool, ...], count: int) -> tuple[str, ...]:
    """Some shared with other Services, whose ports differ; now and then of a family that the Service hasn't."""
    choices = rng.sample(families + ((True, False) if rng.random() < 0.1 else ()), k=1) if count else ()
    shared = rng.random() < 0.3
    made = [vip(index if shared else number * _NUMBERS + 2 + index, ipv6=v) for v in choices for index in range(count)]
    return tuple(dict.fromkeys(made))


def _balancer_ips(rng: Random, number: int, families: tuple[bool, ...]) -> tuple[BalancerIP, ...]:
    ips = [vip(number * _NUMBERS + 8 + index, ipv6=v) for index in range(rng.choice((0, 1, 1, 2))) for v in families]
    return tuple(BalancerIP(ip, rng.choice(("VIP", "VIP", "VIP", "Proxy"))) for ip in ips)


def _slices(rng: Random, ports: tuple[PortSpec, ...], hints: str, *, ipv6: bool) -> list[SliceSpec]:
    """Slices of one family; each address is in one of them, or a second time as terminating."""
    pool = endpoint_pool(ipv6=ipv6)
    ips = [*rng.sample(pool.local, k=rng.choice((0, 1, 1, 2))), *rng.sample(pool.remote, k=rng.choice((0, 1, 2, 3)))]
    rng.shuffle(ips)
    endpoints = [make_endpoint(rng, ip, hints) for ip in ips[:_MOST_ENDPOINTS]]
    if endpoints and rng.random() < 0.15:
        endpoints.append(_terminating(rng, rng.choice(endpoints), hints))
    pieces = rng.choice((1, 1, 1, 2))
    return [
        SliceSpec(f"v{6 if ipv6 else 4}-{piece}", ipv6, _slice_ports(rng, ports), tuple(endpoints[piece::pieces]))
        for piece in range(pieces)
    ]


def _terminating(rng: Random, twin: EndpointSpec, hints: str) -> EndpointSpec:
    """The same address once more, of a pod that ends; None of `twin`'s conditions matter."""
    again = make_endpoint(rng, twin.ip, hints)
    if twin.terminating:
        return twin  # two that terminate are as undefined as two that don't: an exact copy
    return replace(again, ready=rng.choice((False, None)), terminating=True)


def _slice_ports(rng: Random, ports: tuple[PortSpec, ...]) -> tuple[SlicePortSpec, ...]:
    """Of all Service ports mostly; a port may be missing, have no number, or another protocol's name."""
    made = []
    for port in ports:
        if rng.random() < 0.07:
            continue
        number = rng.choice(TARGET_PORTS) if rng.random() > 0.04 else None
        protocol = port.protocol if rng.random() > 0.04 else {"TCP": "UDP", "UDP": "TCP", "SCTP": "TCP"}[port.protocol]
        made.append(SlicePortSpec(port.name, protocol, number))
    return tuple(made)


def make_endpoint(rng: Random, ip: str, hints: str) -> EndpointSpec:
    """An endpoint at an address: on the node that has it, mostly."""
    local = ip in endpoint_pool(ipv6=":" in ip).local
    node = NODE if local else rng.choice(NODES[1:])
    ready, serving, terminating = _conditions(rng)
    with_zones = hints in {"zones", "both"} or (hints == "any" and rng.random() < 0.5)
    with_nodes = hints in {"nodes", "both"} or (hints == "any" and rng.random() < 0.5)
    complete = rng.random() > 0.06  # one without a hint voids all
    return EndpointSpec(
        ip=ip,
        node=node if rng.random() > 0.05 else None,
        zone=rng.choice(ZONES) if rng.random() > 0.1 else None,
        ready=ready,
        serving=serving,
        terminating=terminating,
        for_zones=tuple(rng.sample(ZONES, k=rng.choice((1, 1, 2)))) if with_zones and complete else (),
        for_nodes=(rng.choice((NODE, node, rng.choice(NODES))),) if with_nodes and complete else (),
    )


def _conditions(rng: Random) -> tuple[bool | None, bool | None, bool | None]:
    """Ready, serving, terminating: mostly as the slice controller writes them, else any mix."""
    usual: tuple[tuple[bool | None, bool | None, bool | None], ...] = (
        (True, True, False),
        (True, True, False),
        (True, True, False),
        (None, None, None),
        (True, None, None),
        (False, False, False),
        (False, True, True),
        (False, True, True),
        (False, False, True),
    )
    if rng.random() < 0.85:
        return rng.choice(usual)
    some = (None, True, False)
    return rng.choice(some), rng.choice(some), rng.choice(some)
