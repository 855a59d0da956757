"""Two Services that claim one address and port, which Kubernetes lets happen. Pure."""

from random import Random

from msgspec.structs import replace

from e2e.differential.model import BalancerIP, ServiceSpec
from e2e.differential.places import vip

_CLAIMED = 200  # the number of the address: no other Service has it


def claim_one_address(rng: Random, services: tuple[ServiceSpec, ...]) -> tuple[ServiceSpec, ...]:
    """The last Service wants the first one's first port at an address of both, now and then at its ClusterIP.

    As they are if there is one Service only, or no family in common. Neither has affinity or source ranges: what chance
    makes of those with kube-proxy can't be told.
    """
    first, last = services[0], services[-1]
    shared = [ip for ip in first.cluster_ips if (":" in ip) in {":" in other for other in last.cluster_ips}]
    if len(services) < 2 or not shared:
        return services
    port = replace(last.ports[0], port=first.ports[0].port, protocol=first.ports[0].protocol)
    pieces = tuple(
        replace(
            piece,
            ports=tuple(replace(one, protocol=port.protocol) if one.name == port.name else one for one in piece.ports),
        )
        for piece in last.slices
    )
    last = replace(last, ports=(port, *last.ports[1:]), slices=pieces)
    ip = vip(_CLAIMED, ipv6=":" in shared[0])
    ours = shared[0] if rng.random() < 0.2 else ip
    if ours == ip:
        first = _add(first, ip)
    return (_without_chance(first), *services[1:-1], _without_chance(_add(last, ours)))


def _add(service: ServiceSpec, ip: str) -> ServiceSpec:
    if service.type == "LoadBalancer":
        return replace(service, balancer_ips=(*service.balancer_ips, BalancerIP(ip, "VIP")))
    return replace(service, external_ips=(*service.external_ips, ip))


def _without_chance(service: ServiceSpec) -> ServiceSpec:
    return replace(service, sticky=False, source_ranges=())
