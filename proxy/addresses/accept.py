"""Which version of each pool is in use: the newest that is valid and overlaps no other. Pure.

An invalid pool keeps its last good version; one that was never good isn't used, and stops nothing but itself. Of two
that overlap the one that changed waits, so that an edit takes nobody's addresses away; at a start the younger one.
"""

from collections.abc import Mapping
from typing import NamedTuple

from proxy.addresses.ranges import overlaps, show_range
from proxy.addresses.types import Pool, Problem


class Read(NamedTuple):
    """A pool as the API has it; with problems it isn't valid by itself."""

    pool: Pool | None  # None: it can't even be read
    problems: tuple[Problem, ...] = ()


class Accepted(NamedTuple):
    """What is in use, by name, and what is wrong with the newest version of the others."""

    pools: Mapping[str, Pool] = {}
    problems: Mapping[str, tuple[Problem, ...]] = {}


def accept_pools(before: Mapping[str, Pool], newest: Mapping[str, Read]) -> Accepted:
    """`before` is what was in use; {} after a start. The problems of a pool say which version stands instead."""
    problems = {name: read.problems for name, read in newest.items() if read.problems}
    while True:  # each turn holds one more pool back
        chosen, clash = _choose(before, newest, problems)
        if clash is None:
            return Accepted(chosen, {name: _say_what_stands(name, chosen, found) for name, found in problems.items()})
        problems |= clash


def _choose(
    before: Mapping[str, Pool], newest: Mapping[str, Read], problems: Mapping[str, tuple[Problem, ...]]
) -> tuple[dict[str, Pool], dict[str, tuple[Problem, ...]] | None]:
    """What goes together, and the first pool that must be held back, if any."""
    candidates: dict[str, Pool] = {}
    for name, read in newest.items():
        pool = before.get(name) if name in problems else read.pool
        if pool is not None:
            candidates[name] = pool
    chosen: dict[str, Pool] = {}
    for name in sorted(candidates, key=lambda name: (candidates[name] != before.get(name), _age(candidates[name]))):
        clash = _find_overlap(candidates[name], chosen)
        if clash is not None:
            return chosen, {name: (clash,)}
        chosen[name] = candidates[name]
    return chosen, None


def _age(pool: Pool) -> tuple[str, str]:
    return pool.created, pool.name


def _find_overlap(pool: Pool, others: Mapping[str, Pool]) -> Problem | None:
    for index, own in enumerate(pool.ranges):
        for other in others.values():
            for theirs in other.ranges:
                if overlaps(own, theirs):
                    what = f"{show_range(own)} overlaps {show_range(theirs)} of pool {other.name}"
                    return Problem(f"spec.addresses[{index}]", what)
    return None


def _say_what_stands(name: str, chosen: Mapping[str, Pool], found: tuple[Problem, ...]) -> tuple[Problem, ...]:
    stands = "its last good version stands" if name in chosen else "the pool isn't used"
    return (*found, Problem("", stands))
