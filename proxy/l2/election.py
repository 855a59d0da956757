"""Who comes next for an address that nobody owns: an order of candidates, and a spread over many addresses.

An election is no agreement, since each node reads its own copy of the API: two nodes that see different things take
60 ms apart, and the first claim stands.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from proxy.l2.candidates import Candidate, Vip, Why
from proxy.l2.types import NOBODY, Key, MemberId, key_hash, member_id, rendezvous, spread_out


class Standing(NamedTuple):
    """What is heard of a member that is up."""

    load: int = 0  # addresses that it owns
    returner: bool = False  # came (back) less than a minute ago: last, never excluded
    stale: bool = False  # its proxy is gone, or its table is old


class Heirs(NamedTuple):
    """Who takes an address when its owner is lost: named by the owner; NOBODY where there is none."""

    first: MemberId = NOBODY
    second: MemberId = NOBODY


NO_HEIRS = Heirs()
Wish = tuple[bool, bool, int, int, int]  # what is compared before load and chance; lower comes first


def rank(vip: Vip, up: Mapping[MemberId, Standing]) -> list[MemberId]:
    """The eligible members that are up, the best first: by freshness, tier, preference, endpoints, load, chance."""
    hashed = key_hash(vip.key)
    order = [
        (*_wish(candidate, up[member]), up[member].load, rendezvous(hashed, member), member)
        for candidate, member in _eligible(vip, up)
    ]
    return [entry[-1] for entry in sorted(order)]


class Order:
    """What is the same for all addresses with these candidates: who is eligible, and how much wanted."""

    def __init__(self, vip: Vip, up: Mapping[MemberId, Standing], me: MemberId) -> None:
        rows = [((*_wish(candidate, up[member]), up[member].load), member) for candidate, member in _eligible(vip, up)]
        mine = next((row for row in rows if row[1] == me), None)
        self._me = me
        self._is_in = mine is not None
        self._before = [member for worth, member in rows if mine is not None and worth < mine[0]]
        self._beside = [member for worth, member in rows if mine is not None and worth == mine[0]]

    def place(self, key: Key, without: Collection[MemberId]) -> int | None:
        """How many of the others come before `me` in `rank`, but for those in `without`; None: `me` isn't eligible."""
        if not self._is_in:
            return None
        hashed = key_hash(key)
        own = rendezvous(hashed, self._me)
        beside = self._beside
        if without:
            beside = [member for member in beside if member not in without]
        before = sum(member not in without for member in self._before) if without else len(self._before)
        return before + sum(chance < own for chance in spread_out(hashed, beside))


def spread(vips: Iterable[Vip], up: Mapping[MemberId, Standing]) -> dict[Key, MemberId]:
    """An owner for each address that has a candidate: the best wish, and within it nobody above an equal share.

    The same input gives the same answer in whatever order: addresses are dealt out by their hash. A member has an equal
    share of what its group, the members with the same best wish, has and gets; chance chooses within it.
    """
    groups = _Groups(up)
    dealt = [(key_hash(vip.key), vip.key, groups.of(vip)) for vip in vips]
    loads = {member: standing.load for member, standing in up.items()}
    shares = {
        group: (count + sum(loads[member] for member in group)) // len(group)
        for group, count in Counter(group for _hash, _key, group in dealt).items()
        if group
    }
    below = {group: [member for member in group if loads[member] < share] for group, share in shares.items()}
    owners: dict[Key, MemberId] = {}
    for hashed, key, group in sorted(dealt):
        if group:
            owners[key] = owner = _choose(hashed, group, loads, below[group])
            loads[owner] += 1
            if loads[owner] >= shares[group] and owner in below[group]:
                below[group].remove(owner)
    return owners


def choose_heirs(vips: Sequence[Vip], up: Mapping[MemberId, Standing], me: MemberId) -> dict[Key, Heirs]:
    """Two heirs for each of `vips`, which `me` owns, such that its loss leaves nobody with more than a share."""
    others = {member: standing for member, standing in up.items() if member != me}
    first = spread(vips, others)
    second: dict[Key, MemberId] = {}
    for excluded in sorted(set(first.values())):
        rest = {member: standing for member, standing in others.items() if member != excluded}
        second |= spread([vip for vip in vips if first.get(vip.key) == excluded], rest)
    return {vip.key: Heirs(first.get(vip.key, NOBODY), second.get(vip.key, NOBODY)) for vip in vips}


class _Groups:
    """The members with the best wish, of each address; most share one tuple of candidates, and one group."""

    def __init__(self, up: Mapping[MemberId, Standing]) -> None:
        self._up = up
        self._rows: dict[int, tuple[Wish, MemberId] | None] = {}  # of each candidate, which many addresses share
        self._known: dict[tuple[int, int], tuple[MemberId, ...]] = {}

    def of(self, vip: Vip) -> tuple[MemberId, ...]:
        """Sorted; empty if no candidate is up."""
        place = (id(vip.others), id(vip.mine))
        found = self._known.get(place)
        if found is None:
            wishes = [row for candidate in (vip.mine, *vip.others) if (row := self._row(candidate)) is not None]
            best = min(wishes)[0] if wishes else None
            found = self._known[place] = tuple(sorted([member for wish, member in wishes if wish == best]))
        return found

    def _row(self, candidate: Candidate) -> tuple[Wish, MemberId] | None:
        number = id(candidate)
        if number not in self._rows:
            member = member_id(candidate.node)
            may = candidate.why is Why.ELIGIBLE and member in self._up
            self._rows[number] = (_wish(candidate, self._up[member]), member) if may else None
        return self._rows[number]


def _eligible(vip: Vip, up: Collection[MemberId]) -> list[tuple[Candidate, MemberId]]:
    pairs = [(candidate, member_id(candidate.node)) for candidate in (vip.mine, *vip.others)]
    return [(candidate, member) for candidate, member in pairs if candidate.why is Why.ELIGIBLE and member in up]


def _wish(candidate: Candidate, standing: Standing) -> Wish:
    return (standing.returner, standing.stale, candidate.tier, -candidate.preference, -candidate.ready)


def _choose(
    hashed: int, group: tuple[MemberId, ...], loads: Mapping[MemberId, int], below: Sequence[MemberId]
) -> MemberId:
    """The group's first by chance that is below the share; where none is, the least loaded."""
    if below:
        chances = spread_out(hashed, below)
        return below[chances.index(min(chances))]
    return min((loads[member], rendezvous(hashed, member), member) for member in group)[-1]
