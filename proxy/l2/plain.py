"""Heartbeats that say nothing new, many at a time: nearly all that is ever heard, 290 a second among 30 members.

What they change is when a member was heard, and what it says of others' ages. The rules would do the same with each,
one after another, by a draft and a new state each time; that costs three times as much.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from proxy.l2.clocks import note_clock
from proxy.l2.events import Received
from proxy.l2.guard import FRAME_INTERVALS, is_late
from proxy.l2.messages import Beat, Flags
from proxy.l2.state import NOTHING, Member, State, Wire
from proxy.l2.types import LATER, NODE_NETWORK, Channel, MemberId


class Heard(NamedTuple):
    """What was taken in."""

    state: State
    taken: int  # of the events, from the first on


class _Now(NamedTuple):
    """What all of them are judged by."""

    state: State
    at_s: float
    members: Mapping[MemberId, Member]
    detect_s: float
    frame_s: float  # a wire's last frame that is no older needs no note
    listened_s: float  # a wire that listens beyond this may stop early
    wires: dict[Channel, Wire]


def hear_plain(state: State, now: float, events: Sequence[Received], first: int = 0) -> Heard:
    """The state after the events from `first` on, up to one that says something new, which is left to `step`.

    The same state as `step` with each of them and more to come, all at this time; actions there are none.
    """
    timing = state.settings.timing
    now = max(now, state.last_step_s)
    if state.stopped or is_late(state, now):
        return Heard(state, 0)
    members = dict(state.members)
    here = _Now(
        state,
        now,
        members,
        timing.detect_s,
        frame_s=FRAME_INTERVALS * timing.interval_s,
        listened_s=now + timing.look_s,
        wires=dict(state.wires),
    )
    count = 0
    for at in range(first, len(events)):
        changed = _hear(here, events[at])
        if changed is None:
            break
        members[changed.id] = changed
        count += 1
    if not count:
        return Heard(state, 0)
    return Heard(replace(state, last_step_s=now, members=members, wires=here.wires), count)


def _hear(here: _Now, event: Received) -> Member | None:
    """The sender afterwards; None: the rules must look at it."""
    header, body, to = event.message.header, event.message.body, event.message.to
    member = here.members.get(header.sender)
    if member is None or not isinstance(body, Beat) or body.high:
        return None
    if header.session != member.session or member.left or (to and to != here.state.me):
        return None
    channel = event.channel
    path = member.paths.get(channel)
    if path is None or path.silent or here.at_s - path.heard_s >= here.detect_s:
        return None
    names_me = body.ages_s.get(here.state.me, LATER) < here.detect_s
    if names_me != path.names_me or (Flags.SHARES in header.flags) != path.shares:
        return None
    if not _is_expected(here, event, member):
        return None
    if channel != NODE_NETWORK and not _note_wire(here, channel, member.id, names_me=names_me):
        return None
    came_s = max(path.heard_s, here.at_s - event.age_s)
    heard = replace(path, heard_s=came_s, looks=0, ages_s=body.ages_s, beat_s=came_s, roster=body.roster, mac=body.mac)
    return replace(
        member,
        seqs={**member.seqs, channel: header.seq},
        clock=note_clock(member.clock, header.clock_s, here.at_s - event.age_s),
        word_s=here.at_s - event.age_s,
        flags=header.flags,
        table_age_s=header.table_age_s,
        formats=header.formats,
        newest_key=header.newest_key,
        digest=header.digest,
        count=header.count,
        wires=body.wires or member.wires,
        paths={**member.paths, channel: heard},
    )


def _is_expected(here: _Now, event: Received, member: Member) -> bool:
    """Whether the number is new, the clock ran as ours did, and the digest is what we believe."""
    header, came_s = event.message.header, here.at_s - event.age_s
    if header.sender == here.state.me or header.seq <= member.seqs.get(event.channel, -1) or member.clock is None:
        return False
    stood_s = member.clock.stood_s(header.clock_s, came_s)
    tally = here.state.tallies.get(member.id, NOTHING)
    return stood_s <= here.detect_s / 2 and tally == (header.digest, header.count)


def _note_wire(here: _Now, channel: Channel, member: MemberId, *, names_me: bool) -> bool:
    """The wire's frame; False where the heartbeat may change more of the wire."""
    wire = here.wires.get(channel)
    if wire is None or wire.alone or wire.suspended or (names_me and member not in wire.roster):
        return False
    if wire.roster and wire.listen_until_s > here.listened_s:
        return False
    if here.at_s - wire.last_frame_s > here.frame_s:
        here.wires[channel] = replace(wire, last_frame_s=here.at_s)
    return True
