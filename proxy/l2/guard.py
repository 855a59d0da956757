"""Rule 0: judge oneself first. Whoever stood still knows nothing of the time in between.

asyncio runs ready sockets before due timers, so after a SIGCONT requests of five seconds ago would be answered by who
was replaced (F6): the guard runs first in every step, whatever the event.
"""

from msgspec.structs import replace

from proxy.l2.actions import FlushSockets, Note
from proxy.l2.draft import Draft
from proxy.l2.hearing import is_heard
from proxy.l2.state import State, Wire

MOST_INTERVALS = 2  # between two ticks
LATE_INTERVALS = 0.65  # after the tick that was planned
STOOD_STILL = 0.8  # of the detection time
LISTEN_INTERVALS = 2.0
RETURN_INTERVALS = 2.5
RETURN_S = 0.5
FRAME_INTERVALS = 1 / 8  # a wire's frames are noted no more often


def is_late(state: State, now: float) -> bool:
    """Whether nothing was done since long before now, though it was planned."""
    interval_s = state.settings.timing.interval_s
    planned_s = min(max(state.due_s, state.last_step_s), state.last_step_s + MOST_INTERVALS * interval_s)
    return now - planned_s > LATE_INTERVALS * interval_s


def guard(draft: Draft) -> bool:
    """Whether the event may be looked at; False: we stood still, and it may be as old as that."""
    if not is_late(draft.base, draft.now):
        return True
    late = draft.now - draft.base.last_step_s
    _shift(draft, late)
    if late <= STOOD_STILL * draft.detect_s:
        return True
    stood_still(draft, Note.LATE, late)
    return False


def stood_still(draft: Draft, note: Note, late_s: float) -> None:
    """Forget what came in meanwhile, tell that we live, and listen before we answer: we may have been replaced."""
    draft.report(note, detail=f"{late_s:.2f} s")
    draft.actions.append(FlushSockets())
    for wire in draft.wires.values():
        listen(draft, wire, LISTEN_INTERVALS * draft.timing.interval_s)
    draft.set(beat_s=draft.now)
    draft.hurry()


def listen(draft: Draft, wire: Wire, for_s: float) -> None:
    """Neither answer nor take for a while; others' silence counts anew from here (F4)."""
    draft.put_wire(
        replace(
            wire,
            listening=True,
            listen_from_s=draft.now,
            listen_until_s=max(wire.listen_until_s, draft.now + for_s),
            proven_s=draft.now,
        )
    )
    for key in tuple(draft.busy):
        if key.wire == wire.name and draft.holds[key].take_s is not None:
            draft.put_hold(replace(draft.holds[key], take_s=None, probes=0))
    draft.hurry(draft.now + for_s)


def saw_frame(draft: Draft, wire: Wire | None) -> None:
    """Any frame: the wire lives. After a silence of all frames somebody may have taken over unheard."""
    if wire is None or not (
        wire.suspended or draft.now - wire.last_frame_s > FRAME_INTERVALS * draft.timing.interval_s
    ):
        return
    changed = replace(wire, last_frame_s=draft.now, suspended=False)
    draft.put_wire(changed)
    if wire.suspended:
        draft.report(Note.LISTENING, detail=wire.name)
        listen(draft, changed, max(RETURN_INTERVALS * draft.timing.interval_s, RETURN_S))


def watch_wires(draft: Draft) -> None:
    """Suspend a wire on which nothing is heard; end the listening that has lasted long enough."""
    for wire in draft.wires.values():
        if not wire.alone and not wire.suspended:
            if draft.now - wire.last_frame_s >= draft.detect_s:
                draft.report(Note.SUSPENDED, detail=wire.name)
                draft.put_wire(replace(wire, suspended=True))
                continue
            draft.hurry(wire.last_frame_s + draft.detect_s)
        if wire.listening and draft.now < wire.listen_until_s:
            draft.hurry(wire.listen_until_s)
        elif wire.listening:
            # If it listened to the end and nobody was there, silence says nothing from now on.
            draft.put_wire(replace(wire, listening=False, alone=not _hears(draft, wire)))


def shorten_listening(draft: Draft, wire: Wire) -> None:
    """Stop early once every member was heard since it began, but for the round trip that their claims take."""
    end = draft.now + draft.timing.look_s
    if not wire.roster or wire.listen_until_s <= end:
        return
    heard = [draft.members[member].path(wire.name).heard_s for member in wire.roster if member in draft.members]
    if len(heard) == len(wire.roster) and all(heard_s > wire.listen_from_s for heard_s in heard):
        draft.put_wire(replace(wire, listen_until_s=end))
        draft.hurry(end)


def _hears(draft: Draft, wire: Wire) -> bool:
    return any(is_heard(draft, member.path(wire.name)) for member in draft.members.values())


def _shift(draft: Draft, late_s: float) -> None:
    """Nobody was silent while we weren't looking."""
    for member in draft.members.values():
        paths = {
            channel: replace(
                path,
                heard_s=min(draft.now, path.heard_s + late_s),
                beat_s=min(draft.now, path.beat_s + late_s),
                seen_s=min(draft.now, path.seen_s + late_s),
            )
            for channel, path in member.paths.items()
        }
        draft.put_member(replace(member, paths=paths))
    for wire in draft.wires.values():
        draft.put_wire(replace(wire, last_frame_s=min(draft.now, wire.last_frame_s + late_s)))
    for key in tuple(draft.busy):
        if draft.holds[key].take_s is not None:
            draft.put_hold(replace(draft.holds[key], take_s=None, probes=0))
