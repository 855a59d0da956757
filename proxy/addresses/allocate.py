"""Who gets which address, for all Services at once. Pure: from pools and Services with their status, nothing else.

The order is the Services' age, then their names, so events may come in any order. Who holds an address keeps it; one
is given up only for another that was asked for, or because it can't be used any more. What is free goes to those that
wait. The same input gives the same answer, and an answer that is written into the status gives itself again.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from endpointslice.addresses import family_of
from endpointslice.types import IP, Family, ServiceName
from proxy.addresses.choose import Pick, allows, choose_addresses
from proxy.addresses.ledger import Ledger
from proxy.addresses.requests import Refusal, Request, Rule, read_request
from proxy.addresses.types import DualStack, Namespace, Pool, PoolStatus, Service

DEFAULT_CLASS = "closeby.dev/l2"


class Classes(NamedTuple):
    """Whose Services we serve, by spec.loadBalancerClass."""

    name: str = DEFAULT_CLASS
    classless: bool = True  # those without a class, too


class World(msgspec.Struct, frozen=True):
    """All that an answer depends on."""

    services: Mapping[ServiceName, Service] = {}
    pools: Mapping[str, Pool] = {}  # those in use
    namespaces: Mapping[str, Namespace] = {}
    reserved: frozenset[IP] = frozenset()  # the Nodes' own addresses
    doubtful: bool = False  # a pool is there of which no version can be read: it may hold any address
    classes: Classes = Classes()


class Grant(NamedTuple):
    """What one Service has after the answer."""

    ips: tuple[IP, ...] = ()  # IPv4 before IPv6
    pool: str = ""  # "": no pool that is in use holds them
    refusal: Refusal | None = None  # of what it asks for beyond that
    released: Refusal | None = None  # why it lost an address that it held


class Answer(NamedTuple):
    """For each Service that is ours, and for each pool."""

    grants: Mapping[ServiceName, Grant]
    usage: Mapping[str, PoolStatus]


def is_ours(service: Service, classes: Classes) -> bool:
    """Whether its addresses are ours to write."""
    if not service.wants:
        return False
    return classes.classless if service.load_balancer_class is None else service.load_balancer_class == classes.name


def allocate(world: World) -> Answer:
    """The whole answer."""
    ours = sorted((one for one in world.services.values() if is_ours(one, world.classes)), key=_by_age)
    ledger = Ledger(world.pools, world.reserved)
    grants = {service.name: _keep(service, world, ledger) for service in ours}
    waiting = [service for service in ours if not _is_content(service, grants[service.name])]
    while True:
        moved = False
        for service in waiting:
            before = grants[service.name]
            grants[service.name] = _move(service, before, world, ledger)
            moved |= bool(set(before.ips) - set(grants[service.name].ips))
        if not moved:  # else what they gave up may be what another waits for
            break
        waiting = [service for service in waiting if grants[service.name].refusal]
    for service in ours:
        if _lacks_family(service, grants[service.name]) and service.dual_stack is DualStack.PREFER:
            grants[service.name] = _extend(service, grants[service.name], world, ledger) or grants[service.name]
    return Answer(grants, ledger.count(world.pools.values()))


def _by_age(service: Service) -> tuple[str, str]:
    return service.created, service.name


def _keep(service: Service, world: World, ledger: Ledger) -> Grant:
    """What it holds and may go on holding."""
    kept: list[IP] = []
    released: Refusal | None = None
    for ip in sorted(service.held, key=family_of):
        refusal = _why_released(ip, service, (kept, world), ledger)
        released = released or refusal
        if refusal is None:
            kept.append(ip)
            ledger.take((ip,), service)
    pool = ledger.pool_of(kept[0]) if kept else None
    return Grant(tuple(kept), pool.name if pool else "", None, released)


def _why_released(ip: IP, service: Service, beside: tuple[list[IP], World], ledger: Ledger) -> Refusal | None:
    kept, world = beside
    if family_of(ip) not in service.families:
        return Refusal(Rule.FAMILY_MISMATCH, f"{ip}: the Service has no ClusterIP of that family")
    if any(family_of(other) is family_of(ip) for other in kept):
        return Refusal(Rule.FAMILY_MISMATCH, f"{ip}: it holds {kept[0]} of the same family")
    if ip in world.reserved:
        return Refusal(Rule.NODE_ADDRESS, f"{ip} is a Node's own address")
    pool = ledger.pool_of(ip)
    if pool is None and not world.doubtful:
        return Refusal(Rule.NOT_IN_A_POOL, f"no pool holds {ip}")
    if pool is not None and not allows(pool, service, world.namespaces):
        return Refusal(Rule.POOL_NOT_ALLOWED, f"{ip} is of pool {pool.name}, which isn't for this Service")
    beside_it = ledger.pool_of(kept[0]) if kept else pool
    unknown = world.doubtful and (pool is None or beside_it is None)
    if beside_it is not pool and not unknown:
        return Refusal(Rule.NOT_IN_ONE_POOL, f"{ip} isn't of the pool that holds {kept[0]}")
    return ledger.refuse(ip, service)


def _is_content(service: Service, grant: Grant) -> bool:
    """Whether it has all that it asks for; a second family that is only preferred is asked for later."""
    request = read_request(service)
    if isinstance(request, Refusal) or not grant.ips:
        return False
    if request.ips and request.ips != grant.ips:
        return False
    if request.pool and request.pool != grant.pool:
        return False
    return not _lacks_family(service, grant) or service.dual_stack is DualStack.PREFER


def _lacks_family(service: Service, grant: Grant) -> bool:
    return bool(grant.ips) and bool(set(service.families) - set(map(family_of, grant.ips)))


def _move(service: Service, grant: Grant, world: World, ledger: Ledger) -> Grant:
    """Other addresses in place of those that it holds, or those and the refusal."""
    request = read_request(service)
    if isinstance(request, Refusal):
        return grant._replace(refusal=request)
    if _lacks_family(service, grant) and (extended := _extend(service, grant, world, ledger)):
        return extended
    ledger.leave(grant.ips, service)
    picked = choose_addresses(service, request, Pick(world.pools, world.namespaces, world.reserved), ledger)
    if isinstance(picked, Refusal):
        ledger.take(grant.ips, service)
        return grant._replace(refusal=picked)
    ledger.take(picked.ips, service)
    return Grant(picked.ips, picked.pool, None, grant.released)


def _extend(service: Service, grant: Grant, world: World, ledger: Ledger) -> Grant | None:
    """The same with the other family's address beside it, from the same pool; None if that isn't asked for or had."""
    request = read_request(service)
    pool = world.pools.get(grant.pool)
    if isinstance(request, Refusal) or pool is None or not _fits(request, grant):
        return None
    missing: Iterable[Family] = set(service.families) - set(map(family_of, grant.ips))
    found = tuple(ip for family in missing if (ip := ledger.find(pool, family, service)) is not None)
    if not found:
        return None
    ledger.take(found, service)
    return grant._replace(ips=tuple(sorted((*grant.ips, *found), key=family_of)), refusal=None)


def _fits(request: Request, grant: Grant) -> bool:
    return not request.ips and request.pool in {"", grant.pool}
