"""What clients noticed of an event: attempts and lasting flows, summed, and for how long things went wrong. No I/O."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from e2e.migration.load import Flow
from e2e.stories.page import render_rows
from e2e.world.clients import Outcome, Record

SLOW_S = 0.5  # the kernel sends a SYN again after a second
_BESIDE_S = 0.2  # how much later than a server's end a client may meet it

Window = tuple[float, float]  # monotonic seconds, from and to


class Noticed(NamedTuple):
    """Of new connections and exchanges."""

    attempts: int
    failed: Mapping[Outcome, int]
    slow: int  # answered, but after more than half a second
    until_s: float  # from the event until the last one that failed had begun; 0.0 if none did


class Lasted(NamedTuple):
    """Of connections and datagram flows that were there before the event."""

    flows: int
    broken: int
    silent: int  # of those that didn't break: with a question that nobody answered
    moved: int  # answered by another server than before


class Told(NamedTuple):
    """One event with one proxy: what was noticed, by group of targets, and when what happened, in seconds after it."""

    proxy: str
    event: str
    new: Mapping[str, Noticed]
    lasting: Mapping[str, Lasted]
    times: Mapping[str, float] = {}
    doomed: tuple[str, ...] = ()  # groups that no proxy can keep whole

    def complaints(self) -> list[str]:
        """What went wrong that a proxy could have avoided, but for slow answers; none is the aim."""
        new = {group: sum(noticed.failed.values()) for group, noticed in self.new.items()}
        lasting = {group: lasted.broken + lasted.silent + lasted.moved for group, lasted in self.lasting.items()}
        return [
            f"{self.proxy}, {self.event}, {group}: {number} {what}"
            for numbers, what in ((new, "attempts failed"), (lasting, "lasting flows broke, fell silent or moved"))
            for group, number in numbers.items()
            if number and group not in self.doomed
        ]


def notice(records: Sequence[Record], event_s: float) -> Noticed:
    """The sum of attempts around an event at that monotonic time."""
    failed = [record for record in records if record.outcome is not Outcome.ANSWERED]
    return Noticed(
        attempts=len(records),
        failed=Counter(record.outcome for record in failed),
        slow=sum(record.outcome is Outcome.ANSWERED and record.took_s > SLOW_S for record in records),
        until_s=max((record.began - event_s for record in failed), default=0.0),
    )


def last(flows: Iterable[Flow]) -> Lasted:
    """The sum of lasting flows."""
    seen = list(flows)
    return Lasted(
        flows=len(seen),
        broken=sum(bool(flow.broken) for flow in seen),
        silent=sum(flow.lost > 0 for flow in seen if not flow.broken),
        moved=sum(flow.moved > 0 for flow in seen),
    )


def find_windows(records: Iterable[Record]) -> list[Window]:
    """When one server that was asked at its own address gave no answer: from the last answer before to the first after.

    Nobody on the way chose among servers, so what fails then is the server's own doing. Records in their order.
    """
    windows: list[Window] = []
    answered_s, failing = float("-inf"), False
    for record in records:
        if record.outcome is not Outcome.ANSWERED:
            failing = True
            continue
        if failing:
            windows.append((answered_s, record.began + record.took_s))
        answered_s, failing = record.began, False
    return [*windows, (answered_s, float("inf"))] if failing else windows


def without_windows(records: Iterable[Record], windows: Collection[Window]) -> tuple[list[Record], int]:
    """The attempts without those that failed while a server was away by itself, and how many of these there were."""
    kept, excused = [], 0
    for record in records:
        ended_s = record.began + record.took_s
        met = any(begin <= ended_s and record.began <= end + _BESIDE_S for begin, end in windows)
        if record.outcome is not Outcome.ANSWERED and met:
            excused += 1
        else:
            kept.append(record)
    return kept, excused


def render_told(told: Sequence[Told]) -> str:
    """Markdown: a table of new connections, one of lasting flows, and one of times where there are any."""
    outcomes = [
        outcome for outcome in Outcome if any(outcome in new.failed for one in told for new in one.new.values())
    ]
    head = ("event", "proxy", "asked", "new", "failed", *outcomes, "slow", "the last failure after, s")
    new = [
        (
            *(one.event, one.proxy, group, noticed.attempts, sum(noticed.failed.values())),
            *(noticed.failed.get(outcome, 0) for outcome in outcomes),
            *(noticed.slow, noticed.until_s if noticed.failed else "-"),
        )
        for one in told
        for group, noticed in one.new.items()
    ]
    lasting = [(one.event, one.proxy, group, *lasted) for one in told for group, lasted in one.lasting.items()]
    tables = [
        render_rows(head, new, words=3),
        render_rows(("event", "proxy", "servers", "lasting", "broken", "silent", "moved"), lasting, words=3),
    ]
    names = list(dict.fromkeys(name for one in told for name in one.times))
    if names:
        times = [(one.event, one.proxy, *(one.times.get(name, "-") for name in names)) for one in told if one.times]
        tables.append(render_rows(("event", "proxy", *(f"{name}, s" for name in names)), times, words=2))
    return "\n\n".join(tables)
