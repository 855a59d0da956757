"""Which sources may reach a load balancer's address, by spec.loadBalancerSourceRanges."""

from collections.abc import Iterable

from endpointslice.addresses import family_of
from endpointslice.types import CIDR, IP, Family, Service
from proxy.planner.keys import pack_range


def choose_sources(service: Service, family: Family, node_ips: Iterable[IP]) -> tuple[CIDR, ...]:
    """The allowed sources of the Service's load-balancer addresses of the family; () if everybody may reach them.

    As in kube-proxy, ranges of the other family alone restrict nobody; and where a range holds the node's own address,
    so do the addresses themselves, since a node that has such an address sends from it.
    """
    ranges = collapse_ranges(service.source_ranges, family)
    if ranges and any(_holds(cidr, ip) for cidr in ranges for ip in node_ips if family_of(ip) is family):
        length = 32 if family is Family.IPV4 else 128
        own = (CIDR(f"{ip}/{length}") for ip in service.load_balancer_ips if family_of(ip) is family)
        ranges = collapse_ranges((*ranges, *own), family)
    return ranges


def allows(sources: Iterable[CIDR], client: IP) -> bool:
    """Whether one of the sources holds the client's address."""
    return any(_holds(cidr, client) for cidr in sources if (":" in cidr) == (":" in client))


def collapse_ranges(cidrs: Iterable[CIDR], family: Family) -> tuple[CIDR, ...]:
    """Those of the family, without those inside another: an interval set takes no overlaps (EEXIST, kernel 6.18)."""
    found: list[CIDR] = []
    for cidr in sorted(set(cidrs), key=lambda c: (_bounds(c)[0], -_bounds(c)[1])):
        if (":" in cidr) == (family is Family.IPV6) and not (found and _bounds(found[-1])[1] >= _bounds(cidr)[1]):
            found.append(cidr)
    return tuple(found)


def _holds(cidr: CIDR, ip: IP) -> bool:
    first, last = _bounds(cidr)
    length = 32 if ":" not in ip else 128
    return first <= _bounds(CIDR(f"{ip}/{length}"))[0] <= last


def _bounds(cidr: CIDR) -> tuple[int, int]:
    packed = pack_range(cidr)
    half = len(packed) // 2
    return int.from_bytes(packed[:half]), int.from_bytes(packed[half:])
