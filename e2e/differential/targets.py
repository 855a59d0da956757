"""What is probed in a state: every client, each kind of frontend, right and wrong ports. Pure."""

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from e2e.differential.model import PortSpec, ServiceSpec, State
from e2e.differential.places import CLIENTS, GATEWAY_IPS, LOCAL_PODS, NODE, NODE_IPS, WRONG_PORT, cluster_ip

_UNALLOCATED = 2400  # no Service has this ClusterIP
_OTHER = {"TCP": "UDP", "UDP": "TCP"}


class Target(NamedTuple):
    """What a client sends to. `candidates`: endpoints that may answer, however many are chosen."""

    protocol: str
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

    def __str__(self) -> str:
        """For people."""
        target = self.target
        return f"{self.client} -> {target.protocol} {target.ip} port {target.port} (Service {target.service or 'none'})"


def list_probes(state: State) -> list[Probe]:
    """All there are."""
    targets = [target for service in state.services for target in _service_targets(service)]
    targets += [Target("TCP", cluster_ip(_UNALLOCATED, ipv6=ipv6), 80, 0, "") for ipv6 in (False, True)]
    return [Probe(client, target) for target in dict.fromkeys(targets) for client in CLIENTS if _sends(client, target)]


def choose_probes(state: State, rng: Random, most: int) -> list[Probe]:
    """At most so many of them, by chance; frontends that are none come seldom."""
    probes = list_probes(state)
    weighted = [(rng.random() * (1.0 if probe.target.candidates else 3.0), index) for index, probe in enumerate(probes)]
    return [probes[index] for _, index in sorted(weighted)[:most]]


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


def _service_targets(service: ServiceSpec) -> Iterator[Target]:
    vips = (*service.cluster_ips, *(one.ip for one in service.balancer_ips), *service.external_ips)
    used = {(port.protocol, port.port) for port in service.ports}
    one_list = is_one_list(service)
    for port in service.ports:
        for ip in vips:
            candidates = count_candidates(service, port, ipv6=":" in ip)
            yield Target(port.protocol, ip, port.port, candidates, service.name, service.sticky, one_list)
            other = _OTHER[port.protocol]
            if (other, port.port) not in used:
                yield Target(other, ip, port.port, 0, service.name)
        if port.node_port:
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
    return target.ip not in GATEWAY_IPS or client in {*LOCAL_PODS, NODE}
