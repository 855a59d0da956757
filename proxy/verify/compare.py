"""Where a table does something else than closeby would choose. Pure."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

import msgspec

from endpointslice.topology import Choice, Verdict
from proxy.kernel.ruleset import TABLE as OWN
from proxy.planner.plan import Client
from proxy.verify.expected import Expected, Wanted
from proxy.verify.own import Odd
from proxy.verify.types import Fate, Key, Table, Treatment

CONTESTED = "several Services claim this address and port; kube-proxy has no rule for which of them has it"


class Difference(StrEnum):
    """What differs; stable codes."""

    MISSING = "missing"
    EXTRA = "extra"
    ENDPOINTS = "other-endpoints"
    VERDICT = "other-verdict"
    RANGES = "other-source-ranges"
    AFFINITY = "other-affinity"
    SOURCE = "other-source"
    UNREADABLE = "not-understood"
    ELEMENTS = "other-elements"  # of our own table, though they decide the same


class Row(msgspec.Struct, frozen=True):
    """One frontend, for one kind of client."""

    key: Key
    client: Client
    expected: Expected | None  # None: nobody should have this frontend
    choice: Choice | None
    wanted: Fate | None
    treatment: Treatment | None  # None: the table doesn't have this frontend
    found: Fate | None
    differences: tuple[Difference, ...]
    meant: str = ""  # why it may be so; "": nothing explains it
    detail: str = ""  # more about it, for people

    @property
    def wrong(self) -> bool:
        """Whether something differs that nothing explains."""
        return bool(self.differences) and not self.meant


_OF_CHOICE = frozenset({Difference.ENDPOINTS, Difference.VERDICT})


class Side(NamedTuple):
    """A kind of client that must be looked at."""

    client: Client
    choice: Choice | None
    wanted: Fate | None
    found: Fate | None


def compare(wanted: Wanted, table: Table, odd: Iterable[Odd] = ()) -> tuple[Row, ...]:
    """Every frontend of either. `odd`: our own table's elements that aren't as desired."""
    by_key: dict[Key, list[Odd]] = {}
    for one in odd:
        if one.frontend is not None:
            by_key.setdefault(one.frontend, []).append(one)
    keys = sorted(wanted.frontends.keys() | table.treatments.keys())
    return tuple(row for key in keys for row in _compare_frontend(key, wanted, table, by_key.get(key, ())))


def _compare_frontend(key: Key, wanted: Wanted, table: Table, odd: Iterable[Odd]) -> Iterator[Row]:
    expected, found = wanted.frontends.get(key), table.treatments.get(key)
    sides = _sides(expected, found)
    by_side = [_compare_fates(side.wanted, side.found) for side in sides]
    by_side[0] = (*by_side[0], *_compare_treatments(expected, found))  # told once
    detail = found.problem if found else ""
    if detail:  # what was made of it says nothing
        by_side = [(Difference.UNREADABLE,) for _ in sides]
    if odd and not any(by_side):
        by_side[0] = (Difference.ELEMENTS,)
        detail = ", ".join(sorted({f"{one.set} {one.state}" for one in odd}))
    meant = _explain(key, wanted, table)
    everything = frozenset(difference for differences in by_side for difference in differences)
    explained = meant and (everything <= _OF_CHOICE or (meant is CONTESTED and Difference.UNREADABLE not in everything))
    for side, differences in zip(sides, by_side, strict=True):
        yield Row(
            key=key,
            client=side.client,
            expected=expected,
            choice=side.choice,
            wanted=side.wanted,
            treatment=found,
            found=side.found,
            differences=differences,
            meant=meant if explained and differences else "",
            detail=detail if differences else "",
        )


def _sides(expected: Expected | None, found: Treatment | None) -> list[Side]:
    """One for all clients, or two where this node's own traffic fares differently on either part."""
    ours = (expected.treatment.outside, expected.treatment.here) if expected else (None, None)
    theirs = (found.outside, found.here) if found else (None, None)
    outside, here = (expected.outside, expected.here) if expected else (None, None)
    if ours[0] == ours[1] and theirs[0] == theirs[1]:
        return [Side(Client.ANY, outside, ours[0], theirs[0])]
    return [
        Side(Client.OUTSIDE, outside, ours[0], theirs[0]),
        Side(Client.THIS_NODE, here, ours[1], theirs[1]),
    ]


def _compare_fates(wanted: Fate | None, found: Fate | None) -> tuple[Difference, ...]:
    if wanted == found:
        return ()
    if wanted is None:
        return (Difference.EXTRA,)
    if found is None or found.verdict is None:
        return (Difference.MISSING,)
    return (Difference.VERDICT if wanted.verdict is not found.verdict else Difference.ENDPOINTS,)


def _compare_treatments(expected: Expected | None, found: Treatment | None) -> tuple[Difference, ...]:
    """What differs for all clients of a frontend that both have."""
    if expected is None or found is None:
        return ()
    wanted = expected.treatment
    served = Verdict.DNAT in {found.outside.verdict, found.here.verdict}
    differs = {
        Difference.RANGES: wanted.sources != found.sources,
        Difference.AFFINITY: served and wanted.affinity_s != found.affinity_s,
        Difference.SOURCE: None not in {wanted.source, found.source} and wanted.source is not found.source,
    }
    return tuple(difference for difference, is_there in differs.items() if is_there)


def _explain(key: Key, wanted: Wanted, table: Table) -> str:
    """Why the table may differ here; "" if nothing says so."""
    expected, found = wanted.frontends.get(key), table.treatments.get(key)
    if expected is None or found is None or found.problem:
        return ""
    is_ours = table.name == OWN
    alternative = expected.by_closeby if is_ours else expected.by_kube_proxy
    if alternative is not None and (found.outside, found.here) == (alternative.outside, alternative.here):
        return alternative.reason
    return CONTESTED if key in wanted.contested and not is_ours else ""
