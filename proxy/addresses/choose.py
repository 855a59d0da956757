"""Addresses for one Service that asks, beside what the others hold. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from endpointslice.addresses import family_of
from endpointslice.types import IP, Family
from proxy.addresses.ledger import Ledger
from proxy.addresses.ranges import is_buggy, number_of
from proxy.addresses.requests import Refusal, Request, Rule
from proxy.addresses.selectors import matches_any
from proxy.addresses.types import DualStack, Namespace, Pool, Service


class Pick(NamedTuple):
    """What there is to choose from."""

    pools: Mapping[str, Pool]
    namespaces: Mapping[str, Namespace]
    reserved: Collection[IP]


class Picked(NamedTuple):
    """Addresses of one pool, IPv4 before IPv6."""

    ips: tuple[IP, ...]
    pool: str


def allows(pool: Pool, service: Service, namespaces: Mapping[str, Namespace]) -> bool:
    """Whether the pool is for the Service: by one of its namespaces or their selectors, and by a Service selector.

    Selectors that match nothing allow nothing.
    """
    if pool.namespaces is not None or pool.namespace_selectors is not None:
        own = namespaces.get(service.namespace)
        by_name = service.namespace in (pool.namespaces or ())
        if not by_name and not (own and matches_any(pool.namespace_selectors or (), own.labels)):
            return False
    return pool.service_selectors is None or matches_any(pool.service_selectors, service.labels)


def choose_addresses(service: Service, request: Request, pick: Pick, ledger: Ledger) -> Picked | Refusal:
    """What the request gets: the addresses that it names, one of the pool that it names, or of the first that fits."""
    if request.ips:
        return _choose_named(service, request, pick, ledger)
    if request.pool:
        pool = pick.pools.get(request.pool)
        if pool is None:
            return Refusal(Rule.NO_SUCH_POOL, f"pool {request.pool} isn't there, or isn't valid")
        if not allows(pool, service, pick.namespaces):
            return Refusal(Rule.POOL_NOT_ALLOWED, f"pool {pool.name} isn't for this Service's namespace or labels")
        return _choose_free(service, [pool], ledger)
    pools = order_pools(pool for pool in pick.pools.values() if pool.auto_assign)
    pools = [pool for pool in pools if allows(pool, service, pick.namespaces)]
    if not pools:
        rule = Rule.NO_POOL_MATCHES if pick.pools else Rule.NO_POOLS
        what = f"none of the pools ({', '.join(sorted(pick.pools))}) is for this Service and given out without asking"
        return Refusal(rule, what if pick.pools else "there is no valid IPAddressPool")
    return _choose_free(service, pools, ledger)


def order_pools(pools: Iterable[Pool]) -> list[Pool]:
    """Those that are for some Services only come first, then the lowest priority (0 last), then the name."""
    return sorted(pools, key=lambda pool: (not pool.is_pinned, pool.priority == 0, pool.priority, pool.name))


def _choose_named(service: Service, request: Request, pick: Pick, ledger: Ledger) -> Picked | Refusal:
    pools = [ledger.pool_of(ip) for ip in request.ips]
    for ip, held_by in zip(request.ips, pools, strict=True):
        if held_by is None:
            return Refusal(Rule.NOT_IN_A_POOL, f"no valid pool holds {ip}")
    pool, *others = [pool for pool in pools if pool is not None]
    if any(other is not pool for other in others):
        said = ", ".join(f"{ip} is of {held.name}" for ip, held in zip(request.ips, [pool, *others], strict=True))
        return Refusal(Rule.NOT_IN_ONE_POOL, said)
    if request.pool and request.pool != pool.name:
        what = f"{request.ips[0]} is of pool {pool.name}, and pool {request.pool} is asked for"
        return Refusal(Rule.NOT_IN_ASKED_POOL, what)
    if not allows(pool, service, pick.namespaces):
        return Refusal(Rule.POOL_NOT_ALLOWED, f"{request.ips[0]} is of pool {pool.name}, which isn't for this Service")
    for ip in request.ips:
        if pool.avoid_buggy_ips and is_buggy(family_of(ip), number_of(ip)):
            return Refusal(Rule.AVOIDED_ADDRESS, f"pool {pool.name} has avoidBuggyIPs, which leaves {ip} out")
        if ip in pick.reserved:
            return Refusal(Rule.NODE_ADDRESS, f"{ip} is a Node's own address")
        if refusal := ledger.refuse(ip, service):
            return refusal
    return Picked(request.ips, pool.name)


def _choose_free(service: Service, pools: Sequence[Pool], ledger: Ledger) -> Picked | Refusal:
    """From the first pool that has all families; where both are only preferred, one of them, the primary first."""
    wanted: list[tuple[Family, ...]] = [service.families]
    if service.dual_stack is DualStack.PREFER and len(service.families) > 1:
        wanted += [(family,) for family in service.families]
    for families in wanted:
        for pool in pools:
            found = [ledger.find(pool, family, service) for family in families]
            ips = tuple(sorted((ip for ip in found if ip is not None), key=family_of))
            if ips and len(ips) == len(families):
                return Picked(ips, pool.name)
    return _explain(service, pools)


def _explain(service: Service, pools: Sequence[Pool]) -> Refusal:
    names = ", ".join(pool.name for pool in pools)
    own = set(service.families)
    if not any(own <= {held.family for held in pool.ranges} for pool in pools):
        words = " and ".join(sorted(own))
        return Refusal(Rule.FAMILY_NOT_IN_POOL, f"no pool that it may use ({names}) has {words} addresses")
    return Refusal(Rule.POOL_EXHAUSTED, f"every address that it may use is taken: {names}")
