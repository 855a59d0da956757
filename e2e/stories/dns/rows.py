"""Look-ups counted, and docs/dns.md's table of them. No I/O."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from e2e.stories.dns.queries import LookUp

_HEAD = (
    *("what happens to one node's CoreDNS", "proxy", "distribution", "look-ups", "answered on the own node"),
    *("of other nodes' clients", "after a retry", "failed", "longest gap"),
)


class Row(msgspec.Struct, frozen=True):
    """What became of the look-ups of one stage."""

    stage: str
    lookups: int
    own: int  # answered by the client's own node
    untouched: int  # look-ups of clients whose node nothing happened to
    untouched_own: int
    retried: int  # answered, but not at the first try
    failed: int
    faults: dict[str, int]  # failed ones, by the last try's
    longest_gap_s: float  # between two answers to one client, by one protocol and family
    longest_wait_s: float  # for an answer


class Run(msgspec.Struct, frozen=True):
    """One proxy and one distribution through all stages."""

    proxy: str
    distribution: str
    machine: str
    rows: list[Row]


def count(
    stage: str, lookups: Mapping[str, Sequence[LookUp]], node_of: Mapping[str, str], touched: Collection[str]
) -> Row:
    """The stage's row; `lookups` by client, `touched` the nodes that something happened to."""
    told = [(node_of[client], one) for client, of_client in lookups.items() for one in of_client]
    answered = [(node, one) for node, one in told if not one.fault]
    own = [node for node, one in answered if one.server == node]
    return Row(
        stage=stage,
        lookups=len(told),
        own=len(own),
        untouched=sum(node not in touched for node, _ in told),
        untouched_own=sum(node not in touched for node in own),
        retried=sum(one.tries > 1 for _, one in answered),
        failed=len(told) - len(answered),
        faults=dict(Counter(one.fault for _, one in told if one.fault)),
        longest_gap_s=max((longest_gap_s(of_client) for of_client in lookups.values()), default=0.0),
        longest_wait_s=max((one.took_s for _, one in answered), default=0.0),
    )


def longest_gap_s(lookups: Iterable[LookUp]) -> float:
    """The longest time between two answers of one way, and from the first look-up to the first answer. 0.0 without."""
    moments: dict[int, list[float]] = {}
    for one in sorted(lookups, key=lambda one: one.began):
        times = moments.setdefault(one.way, [one.began])
        if not one.fault:
            times.append(one.began + one.took_s)
    return max((b - a for times in moments.values() for a, b in pairwise(sorted(times))), default=0.0)


def render_rows(runs: Iterable[Run]) -> str:
    """Markdown: a row a stage and run, the runs of one stage together."""
    told = sorted({(run.proxy, run.distribution): run for run in runs}.items())
    lines = [f"| {' | '.join(_HEAD)} |", f"|---|---|---|{'---:|' * (len(_HEAD) - 3)}"]
    for stage in dict.fromkeys(row.stage for _, run in told for row in run.rows):
        lines += [
            f"| {stage} | {proxy} | {distribution} | {_cells(row)} |"
            for (proxy, distribution), run in told
            for row in run.rows
            if row.stage == stage
        ]
    return "\n".join(lines) + "\n"


def render_figures(runs: Sequence[Run]) -> str:
    """The rows, and where they were measured."""
    machines = dict.fromkeys(run.machine for run in runs)
    return "\n".join([*(f"{machine}." for machine in machines), "", render_rows(runs)])


def render_row(row: Row) -> str:
    """The row in words."""
    faults = f" ({_faults(row)})" if row.failed else ""
    return (
        f"{row.lookups:,} look-ups, {_percent(row.own, row.lookups)} on the own node, {row.retried:,} after a retry, "
        f"{row.failed:,} failed{faults}, longest gap {row.longest_gap_s:.2f} s"
    )


def _cells(row: Row) -> str:
    failed = f"{row.failed:,}" + (f" ({_faults(row)})" if row.failed else "")
    shares = f"{_percent(row.own, row.lookups)} | {_percent(row.untouched_own, row.untouched)}"
    return f"{row.lookups:,} | {shares} | {row.retried:,} | {failed} | {row.longest_gap_s:.2f} s"


def _faults(row: Row) -> str:
    return ", ".join(f"{n:,} {fault}" for fault, n in sorted(row.faults.items()))


def _percent(part: int, whole: int) -> str:
    """100 % and 0 % only if it is all or none of them; "-" of nothing."""
    if not whole:
        return "-"
    share = 100 * part / whole
    if part not in {0, whole}:
        share = min(max(share, 0.1), 99.9)
    return f"{share:.1f} %" if part not in {0, whole} else f"{share:.0f} %"
