"""What the bridge drops, as text for nft in the bridge family; pure.

The wire stays whole for everyone else, and no carrier is lost: tc's drop actions and ebtables are missing in many
kernels, nft's bridge family isn't.
"""

from collections.abc import Iterable, Sequence
from itertools import permutations, product
from typing import NamedTuple

from e2e.lan.members import Member

EVERYTHING = ("counter",)


class Cut(NamedTuple):
    """Frames that enter at a port and would leave at the other, of these kinds."""

    source: str
    target: str
    matches: Sequence[str] = EVERYTHING  # nft's words for what is dropped


def cut_around(one: Member, others: Iterable[Member], matches: Sequence[str] = EVERYTHING) -> tuple[Cut, ...]:
    """Both ways between one and each of the others."""
    ports = [other.port for other in others if other != one]
    ways = (*product([one.port], ports), *product(ports, [one.port]))
    return tuple(Cut(source, target, matches) for source, target in ways)


def cut_all(members: Iterable[Member]) -> tuple[Cut, ...]:
    """Each from each other."""
    return tuple(Cut(source.port, target.port) for source, target in permutations(members, 2))


def render_cuts(cuts: Iterable[Cut]) -> str:
    """The whole table, replaced in one transaction; without cuts it drops nothing."""
    rules = "".join(
        f"        iifname {cut.source} oifname {cut.target} {match} drop\n" for cut in cuts for match in cut.matches
    )
    return f"""table bridge cuts
delete table bridge cuts
table bridge cuts {{
    chain forward {{
        type filter hook forward priority filter;
{rules}    }}
}}
"""
