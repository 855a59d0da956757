"""Which L2Advertisements apply to an address, and what they say together (v1beta1). No I/O.

An address that a pool holds is announced where an advertisement says so; one that is of no pool, anywhere: whoever gave
it knows nothing of advertisements. Of several Services at one address, an advertisement for one is for all.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping

from endpointslice.addresses import family_of
from endpointslice.types import IP, Family, Labels, NodeName, ServiceName
from proxy.addresses.pools import is_for
from proxy.addresses.ranges import number_of
from proxy.addresses.selectors import matches, matches_any
from proxy.addresses.types import Advertisement, NodeState, Pool
from proxy.l2.candidates import EVERYWHERE, Reach

ANYWHERE = ""  # of no pool
NOWHERE = "-"  # of a pool, and no advertisement is for it
_NO_LABELS: Labels = frozenset()


class Advertising:
    """Answers for many addresses; what matched is known by the advertisements' names, as many addresses share them."""

    def __init__(
        self,
        pools: Mapping[str, Pool],
        advertisements: Mapping[str, Advertisement],
        labels: Mapping[ServiceName, Labels],
    ) -> None:
        self._pools = pools
        self._advertisements = advertisements
        self._labels = labels
        self._starts: dict[Family, tuple[list[int], list[tuple[int, str]]]] = {}
        for family in Family:
            ranges = sorted(
                (one.first, one.last, name)
                for name, pool in pools.items()
                for one in pool.ranges
                if one.family is family
            )
            self._starts[family] = [first for first, _, _ in ranges], [(last, name) for _, last, name in ranges]
        self._of_pool: dict[str, tuple[Advertisement, ...]] = {}

    def pool_of(self, vip: IP) -> Pool | None:
        """The pool that holds the address; pools in use don't overlap."""
        firsts, rest = self._starts[family_of(vip)]
        number = number_of(vip)
        place = bisect_right(firsts, number) - 1
        if place < 0 or rest[place][0] < number:
            return None
        return self._pools[rest[place][1]]

    def name_reach(self, vip: IP, services: Iterable[ServiceName]) -> str:
        """The names of the advertisements for the address, or ANYWHERE or NOWHERE."""
        pool = self.pool_of(vip)
        if pool is None:
            return ANYWHERE
        labels = [self._labels.get(name, _NO_LABELS) for name in services]
        found = [
            one.name
            for one in self._for_pool(pool)
            if not one.service_selectors or any(matches_any(one.service_selectors, held) for held in labels)
        ]
        return ",".join(found) or NOWHERE

    def _for_pool(self, pool: Pool) -> tuple[Advertisement, ...]:
        if pool.name not in self._of_pool:
            found = (one for _name, one in sorted(self._advertisements.items()) if is_for(one, pool))
            self._of_pool[pool.name] = tuple(found)
        return self._of_pool[pool.name]

    def spell_reach(self, name: str, nodes: Iterable[NodeState]) -> Reach:
        """What a name that `name_reach` gave stands for, among these Nodes."""
        if name == ANYWHERE:
            return EVERYWHERE
        chosen = [] if name == NOWHERE else [self._advertisements[one] for one in name.split(",")]
        return combine(chosen, nodes)


def combine(advertisements: Iterable[Advertisement], nodes: Iterable[NodeState]) -> Reach:
    """Nodes that one of them selects; on each, weights and interfaces of those that select it, as MetalLB has it.

    One without interfaces allows all. Without Nodes, as where they may not be read, nobody is excluded by a selector.
    """
    chosen, known = tuple(advertisements), tuple(nodes)
    allowed: set[NodeName] = set()
    weights: dict[NodeName, int] = {}
    interfaces: dict[NodeName, frozenset[str]] = {}
    for node in known:
        here = [one for one in chosen if not one.node_selectors or matches_any(one.node_selectors, node.labels)]
        if not here:
            continue
        allowed.add(node.name)
        held = dict(node.labels)
        weight = sum(part.weight for one in here for part in one.preferences if matches(part.nodes, held))
        if weight:
            weights[node.name] = weight
        if all(one.interfaces for one in here):
            interfaces[node.name] = frozenset().union(*(one.interfaces for one in here))
    everybody = len(allowed) == len(known) and bool(chosen)
    wishes = {one.spreads for one in chosen}
    return Reach(
        None if everybody else frozenset(allowed), weights, interfaces, spread=True in wishes, disagrees=len(wishes) > 1
    )
