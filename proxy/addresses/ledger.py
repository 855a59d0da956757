"""Who has which address, while an answer is worked out. Pure: nothing but the answer leaves it."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping

from endpointslice.addresses import family_of
from endpointslice.types import IP, Family, ServiceName
from proxy.addresses.ranges import address_of, count_addresses, is_buggy, iter_from, number_of
from proxy.addresses.requests import Refusal, sharing_key
from proxy.addresses.sharing import refuse_sharing
from proxy.addresses.types import Pool, PoolStatus, Range, Service

_MOST_INT64 = (1 << 63) - 1  # what the published status can hold


class Ledger:
    """Addresses in use, and the lowest that isn't, in time that doesn't grow with the pool."""

    def __init__(self, pools: Mapping[str, Pool], reserved: Collection[IP]) -> None:
        self._reserved = reserved
        self._users: dict[IP, dict[ServiceName, Service]] = {}
        self._shared: dict[str, set[IP]] = {}  # by sharing key
        self._starts: dict[tuple[str, Family], int] = {}  # places in the pool below which nothing is free
        self._held: dict[Family, list[tuple[Range, Pool]]] = {
            family: sorted(
                ((held, pool) for pool in pools.values() for held in pool.ranges if held.family is family),
                key=lambda pair: pair[0].first,
            )
            for family in Family
        }

    def pool_of(self, ip: IP) -> Pool | None:
        """The pool that holds the address; pools in use don't overlap."""
        number, held = number_of(ip), self._held[family_of(ip)]
        index = bisect_right(held, number, key=lambda pair: pair[0].first) - 1
        return held[index][1] if index >= 0 and number <= held[index][0].last else None

    def refuse(self, ip: IP, service: Service) -> Refusal | None:
        """Why the Service can't have it beside those that do, or None."""
        for holder in self._users.get(ip, {}).values():
            if holder.name != service.name and (refusal := refuse_sharing(ip, holder, service)):
                return refusal
        return None

    def take(self, ips: Iterable[IP], service: Service) -> None:
        """The Service has them from now on."""
        for ip in ips:
            self._users.setdefault(ip, {})[service.name] = service
            if key := sharing_key(service):
                self._shared.setdefault(key, set()).add(ip)

    def leave(self, ips: Iterable[IP], service: Service) -> None:
        """The Service has them no more."""
        for ip in ips:
            users = self._users[ip]
            del users[service.name]
            if not users:
                del self._users[ip]
                self._shared.get(sharing_key(service), set()).discard(ip)
                if (pool := self.pool_of(ip)) is not None:
                    place = pool.name, family_of(ip)
                    self._starts[place] = min(self._starts.get(place, 0), _place_of(pool, ip))

    def find(self, pool: Pool, family: Family, service: Service) -> IP | None:
        """The pool's first address, in the order of its ranges, that is free or that the Service may share."""
        free = self._find_free(pool, family)
        shared = [
            ip
            for ip in self._shared.get(sharing_key(service), ())
            if family_of(ip) is family and self.pool_of(ip) is pool and self.refuse(ip, service) is None
        ]
        found = shared if free is None else [*shared, free]
        return min(found, key=lambda ip: _place_of(pool, ip), default=None)

    def _find_free(self, pool: Pool, family: Family) -> IP | None:
        place = pool.name, family
        start = self._starts.get(place, 0)
        for index, number in enumerate(iter_from(pool.ranges, family, start), start):
            self._starts[place] = index
            if pool.avoid_buggy_ips and is_buggy(family, number):
                continue
            ip = address_of(family, number)
            if ip not in self._users and ip not in self._reserved:
                return ip
        return None

    def count(self, pools: Iterable[Pool]) -> dict[str, PoolStatus]:
        """Addresses given and left of each pool."""
        given: dict[tuple[str, Family], int] = {}
        for ip in self._users:
            if (pool := self.pool_of(ip)) is not None:
                place = pool.name, family_of(ip)
                given[place] = given.get(place, 0) + 1
        return {pool.name: _status(pool, given) for pool in pools}


def _status(pool: Pool, given: Mapping[tuple[str, Family], int]) -> PoolStatus:
    assigned = {family: given.get((pool.name, family), 0) for family in Family}
    left = {
        family: count_addresses(pool.ranges, family, avoid_buggy=pool.avoid_buggy_ips) - assigned[family]
        for family in Family
    }
    return PoolStatus(
        assigned[Family.IPV4],
        assigned[Family.IPV6],
        max(0, left[Family.IPV4]),
        min(max(0, left[Family.IPV6]), _MOST_INT64),
    )


def _place_of(pool: Pool, ip: IP) -> int:
    """How many of the pool's addresses of that family come before it."""
    number, family, before = number_of(ip), family_of(ip), 0
    for held in pool.ranges:
        if held.family is not family:
            continue
        if held.first <= number <= held.last:
            return before + number - held.first
        before += held.last - held.first + 1
    return before
