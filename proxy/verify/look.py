"""EFFECT. Looks at tables and at what they should be until both hold still."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from endpointslice.snapshot import Snapshot
from endpointslice.topology import Place
from endpointslice.types import Family
from proxy.host import list_addresses
from proxy.kernel.netlink import host_families
from proxy.kernel.ruleset import TABLE
from proxy.planner.planner import NOTHING, Moment, Planner
from proxy.planner.settings import Settings
from proxy.verify import foreign
from proxy.verify.checks import Check, check_kube_proxy, check_own
from proxy.verify.expected import Wanted, expect
from proxy.verify.own import Elements
from proxy.verify.read import find_families, read_foreign, read_generation, read_own_elements
from proxy.verify.report import VerifyReport, report_checks

LOOKS = 5
PAUSE_S = 1.5  # longer than kube-proxy usually waits between two syncs


class Look(NamedTuple):
    """What was seen, and the ruleset's generation then."""

    generation: int
    report: VerifyReport


class Settled(NamedTuple):
    """The last look, and whether the tables held still; without a difference it doesn't matter."""

    report: VerifyReport
    still: bool


def settle(look: Callable[[], Look], pause: Callable[[float], None] = time.sleep) -> Settled:
    """What differs twice in a row while no table changes; a proxy that is about to write isn't wrong."""
    before: Look | None = None
    for number in range(LOOKS):
        seen = look()
        if not seen.report.wrong or seen == before:
            break
        before = seen
        if number < LOOKS - 1:
            pause(PAUSE_S)
    else:
        return Settled(seen.report, still=False)
    return Settled(seen.report, still=True)


def look_at(snapshot: Snapshot, settings: Settings, tables: Sequence[str]) -> Look:
    """These tables of this network namespace against the Snapshot's plan. KernelError if they can't be read."""
    generation = read_generation()
    families = host_families()
    elements = {family: read_own_elements(family) for family in families} if TABLE in tables else {}
    planner = _plan(snapshot, settings, families, elements.values())
    node = snapshot.nodes.get(settings.node)
    place = Place(settings.node, node.zone if node is not None else None)
    plans = (planner.plan(name, 0.0) for name in sorted(snapshot.services))
    wanted = expect([plan for plan in plans if plan is not None], place, planner.node_addresses)
    checks = [_check(table, elements, planner, wanted) for table in tables]
    return Look(generation, report_checks(place, checks))


def _plan(
    snapshot: Snapshot, settings: Settings, families: Sequence[Family], held: Iterable[Elements | None]
) -> Planner:
    """Everything planned; an endpoint that a table of ours holds keeps its index, which is chance."""
    planner = Planner(settings, families)
    elements = {set_id: part for one in held if one for set_id, part in one.items()}
    planner.update(snapshot, NOTHING, Moment(elements, list_addresses(), 0.0))
    return planner


def _check(table: str, elements: Mapping[Family, Elements | None], planner: Planner, wanted: Wanted) -> Check:
    if table == TABLE:
        return check_own(elements, planner.desired.elements, wanted, planner.settings)
    parts = [read_foreign(family) for family in find_families(foreign.TABLE)]
    return check_kube_proxy(parts, wanted, planner.settings)
