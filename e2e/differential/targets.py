"""What is probed in a state: every client, each kind of frontend, right and wrong ports. Pure."""

from collections.abc import Iterable, Iterator
from random import Random
from typing import NamedTuple

from e2e.differential.expect import Own, Way, choose_as_closeby, find_port, find_server, list_claimants, list_vips
from e2e.differential.model import PortSpec, ServiceSpec, State
from e2e.differential.places import GATEWAY_IPS, LOCAL_PODS, NODE, NODE_IPS, OUTSIDE, REMOTE_POD, WRONG_PORT, cluster_ip

_UNALLOCATED = 2400  # no Service has this ClusterIP
_HERE = (*LOCAL_PODS, NODE)
_OTHER = {"TCP": "UDP", "UDP": "TCP", "SCTP": "TCP"}


class Target(NamedTuple):
    """What a client sends to. `candidates`: endpoints that may answer, however many are chosen."""

    protocol: str  # TCP, UDP, or ICMP: a ping, whose port is 0
    ip: str
    port: int
    candidates: int
    service: str  # "" for an address of none
    sticky: bool = False  # one client meets one endpoint; which one, is chance
    one_list: bool = True  # all frontends of the Service choose among the same endpoints


class Probe(NamedTuple):
    """A client and what it sends to."""

    client: str
    target: Target
    must: frozenset[str] | None = None  # endpoints that closeby reaches by a rule of its own; None: as kube-proxy
    why: Own | None = None  # that rule
    binding: str = ""  # probes with equal words share what affinity binds

    def __str__(self) -> str:
        """For people."""
        target = self.target
        return f"{self.client} -> {target.protocol} {target.ip} port {target.port} (Service {target.service or 'none'})"

    @property
    def way(self) -> Way:
        """The same without what is expected."""
        return Way(self.client, self.target.protocol, self.target.ip, self.target.port)


def list_probes(state: State) -> list[Probe]:
    """All there are."""
    found = [target for service in state.services for target in _service_targets(service)]
    found += [Target("TCP", cluster_ip(_UNALLOCATED, ipv6=ipv6), 80, 0, "") for ipv6 in (False, True)]
    return [probe for target in _claimed_once(found) for probe in _make_probes(state, target)]


def choose_probes(state: State, rng: Random, most: int) -> list[Probe]:
    """At most so many of them, by chance, and all that share a binding with one of them.

    Frontends that are none come seldom.
    """
    probes = list_probes(state)
    weighted = [(rng.random() * (1.0 if probe.target.candidates else 3.0), index) for index, probe in enumerate(probes)]
    chosen = [probes[index] for _, index in sorted(weighted)[:most]]
    bound = next((probe.binding for probe in chosen if probe.binding), "")
    return [*chosen, *(probe for probe in probes if bound and probe.binding == bound and probe not in chosen)]


def list_companions(state: State, probe: Probe) -> list[Probe]:
    """The probe and those that share a binding with it, as they are in that state."""
    probes = list_probes(state)
    same = [one for one in probes if one.way == probe.way]
    bindings = {one.binding for one in same} - {""}
    return [*(same or [probe]), *(one for one in probes if one.binding in bindings and one not in same)]


def count_candidates(service: ServiceSpec, port: PortSpec, *, ipv6: bool) -> int:
    """Endpoints ip:port of that Service port and family in any condition."""
    return len(
        {
            (endpoint.ip, number.port)
            for piece in service.slices
            if piece.is_ipv6 is ipv6
            for number in piece.ports
            if (number.name, number.protocol) == (port.name, port.protocol) and number.port is not None
            for endpoint in piece.endpoints
        }
    )


def is_one_list(service: ServiceSpec) -> bool:
    """Whether no policy makes some of the frontends choose among other endpoints than the others."""
    return service.internal_policy == service.external_policy == "Cluster"


def _make_probes(state: State, target: Target) -> Iterator[Probe]:
    """One for each client that it makes sense for; all inside the cluster have the same choice."""
    for clients in ((*_HERE, REMOTE_POD), (OUTSIDE,)):
        first = _make_probe(state, Probe(clients[0], target))
        for client in clients:
            if _sends(client, target):
                binding = first.binding and f"{client} {first.binding}"
                yield Probe(client, target, first.must, first.why, binding)


def _make_probe(state: State, probe: Probe) -> Probe:
    """With what closeby must do on its own, and what it shares a binding with, but for the client."""
    target = probe.target
    if not target.candidates:
        return probe
    claimed = len(list_claimants(state, probe.way)) > 1
    own = find_server(state, probe.way, target.service)
    if own is None or not _serves(own, target):
        return probe
    chosen, why = choose_as_closeby(own, probe.way, state.zone)
    why = Own.CLAIM if claimed else why
    must = frozenset(one.words for one in chosen) if why else None
    port = find_port(own, probe.way)
    shares = target.sticky and target.one_list and not claimed and port is not None
    binding = f"{own.name} {target.protocol} {port.name} {':' in target.ip}" if shares and port else ""
    return Probe(probe.client, target, must, why, binding)


def _serves(service: ServiceSpec, target: Target) -> bool:
    """Whether the address is one of the Service's that everybody may use."""
    guarded = {one.ip for one in service.balancer_ips} if service.source_ranges else set()
    addresses = {*service.cluster_ips, *list_vips(service), *NODE_IPS} - guarded
    return target.protocol != "ICMP" and target.ip in addresses


def _claimed_once(targets: Iterable[Target]) -> list[Target]:
    """Each address and port once; where several Services claim it, with the endpoints of all."""
    found: dict[tuple[str, str, int], Target] = {}
    for target in targets:
        key = (target.protocol, target.ip, target.port)
        before = found.setdefault(key, target)
        if before.service == target.service or target.protocol == "ICMP":
            continue
        candidates = before.candidates + target.candidates
        sticky = before.sticky or target.sticky
        found[key] = before._replace(candidates=candidates, sticky=sticky, one_list=False)
    return list(found.values())


def _service_targets(service: ServiceSpec) -> Iterator[Target]:
    vips = (*service.cluster_ips, *(one.ip for one in service.balancer_ips), *service.external_ips)
    used = {(port.protocol, port.port) for port in service.ports}
    one_list = is_one_list(service)
    for ip in vips:
        yield Target("ICMP", ip, 0, 1, service.name)
    for port in service.ports:
        for ip in vips:
            if port.protocol != "SCTP":  # few kernels have it: its ports must disturb no others
                candidates = count_candidates(service, port, ipv6=":" in ip)
                yield Target(port.protocol, ip, port.port, candidates, service.name, service.sticky, one_list)
            other = _OTHER[port.protocol]
            if (other, port.port) not in used:
                yield Target(other, ip, port.port, 0, service.name)
        if port.node_port and port.protocol != "SCTP":
            yield from _node_port_targets(service, port)
    for ip in service.cluster_ips:
        yield Target("TCP", ip, WRONG_PORT, 0, service.name)


def _node_port_targets(service: ServiceSpec, port: PortSpec) -> Iterator[Target]:
    """The NodePort at the node's address, at one that it hasn't in its Node object, and at a ClusterIP."""
    one_list = is_one_list(service)
    for ip in NODE_IPS:
        candidates = count_candidates(service, port, ipv6=":" in ip)
        yield Target(port.protocol, ip, port.node_port, candidates, service.name, service.sticky, one_list)
    for ip in (*GATEWAY_IPS, service.cluster_ips[0]):
        yield Target(port.protocol, ip, port.node_port, 0, service.name)


def _sends(client: str, target: Target) -> bool:
    """Whether it makes sense: a pod's gateway address is reached from the pods of the node and from the node."""
    return target.ip not in GATEWAY_IPS or client in _HERE
