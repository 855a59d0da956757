"""How often all that has come in is looked at, and whether the heartbeats between may go out as they were written."""

from proxy.l2.draft import Draft
from proxy.l2.guard import MOST_INTERVALS
from proxy.l2.hearing import all_are_heard
from proxy.l2.state import State, Wire
from proxy.l2.types import LATER

TICKS_AN_INTERVAL = 4
CALM_S = 0.2  # an interval that is at least so long may pass as a whole while time changes nothing


def choose_pause_s(draft: Draft) -> float:
    """Until the rules look again, if none wants to sooner. Heartbeats wake nobody: they are read then."""
    # A wake-up costs more than what it reads, as by then caches have forgotten all of this; so there are few while no
    # key waits for time to pass. When a heartbeat came is known, however late it is read.
    interval_s = draft.timing.interval_s
    waiting = draft.busy or draft.state.shared or draft.state.sharing or any(map(_is_unsettled, draft.wires.values()))
    if waiting or interval_s < CALM_S:
        return interval_s / TICKS_AN_INTERVAL
    many = len(draft.members) > draft.timing.crowd
    return MOST_INTERVALS * interval_s if many and all_are_heard(draft) else interval_s


def _is_unsettled(wire: Wire) -> bool:
    return wire.listening or wire.suspended or wire.majority_s == LATER


def says_otherwise(draft: Draft, before: State) -> bool:
    """Whether heartbeats that were written at that state would be wrong now."""
    after = draft.state
    return (
        draft.tallies.get(draft.me) != before.tallies.get(draft.me)
        or (after.draining, after.restarting, after.stopped) != (before.draining, before.restarting, before.stopped)
        or (after.sharing, draft.wires.keys()) != (before.sharing, before.wires.keys())
    )
