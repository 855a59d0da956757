"""Heartbeats: what one says, and what hearing one changes."""

from collections.abc import Mapping

from msgspec.structs import replace

from proxy.l2.actions import Note, Send
from proxy.l2.draft import Draft
from proxy.l2.events import Received
from proxy.l2.guard import shorten_listening
from proxy.l2.hearing import channel_of, has_majority, is_heard, two_way
from proxy.l2.messages import Beat, Flags, Want
from proxy.l2.state import NOTHING, Member, Path, Wire
from proxy.l2.types import LATER, NEVER, NOBODY, NODE_NETWORK, Channel, MemberId

JITTER = 0.2  # of the interval, only ever earlier: never in phase with others


def send_beats(draft: Draft) -> None:
    """One on each wire and on the node network, when they are due; in a crowd those on wires after them are kept."""
    if draft.now >= draft.state.beat_s:
        for channel in (NODE_NETWORK, *draft.wires):
            send_beat(draft, channel)
        next_s = _next_beat_s(draft, draft.now)
        if draft.crowded:
            kept = [_beat_on(draft, channel, NOBODY) for channel in draft.wires]
            draft.keep(tuple(send for send in kept if send is not None), next_s)
            next_s = _next_beat_s(draft, next_s)
        draft.set(beat_s=next_s)
    draft.hurry(draft.state.beat_s)


def _next_beat_s(draft: Draft, after_s: float) -> float:
    chance = ((draft.me ^ draft.seq) * 0x9E3779B97F4A7C15 >> 40) % 1024 / 1024
    return after_s + draft.timing.interval_s * (1 - JITTER * chance)


def send_beat(draft: Draft, channel: Channel, to: MemberId = NOBODY) -> None:
    """What this member hears on the channel."""
    send = _beat_on(draft, channel, to)
    if send is not None:
        draft.actions.append(send)


def _beat_on(draft: Draft, channel: Channel, to: MemberId) -> Send | None:
    """None where there is no carrier."""
    wire = draft.wires.get(channel)
    ages: dict[MemberId, float] = {}
    for member in draft.members.values():
        path = member.paths.get(channel)
        if path is not None and not member.left:
            ages[member.id] = draft.now - path.heard_s
    if wire is None:
        members = 1 + sum(member.session is not None and not member.left for member in draft.members.values())
        return draft.letter(channel, Beat(ages, "", members, frozenset(draft.wires)), to)
    return draft.letter(channel, Beat(ages, wire.mac, 1 + len(wire.roster)), to) if wire.carrier else None


def hear(draft: Draft, event: Received, member: Member) -> Member:
    """Any genuine message is a sign of life; a heartbeat says more."""
    channel, body = event.channel, event.message.body
    before = member.path(channel)
    was_silent = not is_heard(draft, before)
    came_s = max(before.heard_s, draft.now - event.age_s)  # the guard may have moved the other on
    path = replace(before, heard_s=came_s, silent=False, looks=0, shares=before.shares and not was_silent)
    if isinstance(body, Beat):
        path = replace(
            path,
            names_me=body.ages_s.get(draft.me, LATER) < draft.detect_s if body.is_about(draft.me) else before.names_me,
            ages_s=_merge_ages(before, body),
            beat_s=came_s,
            roster=body.roster,
            shares=Flags.SHARES in event.message.header.flags,
            mac=body.mac,
        )
        if body.wires:
            member = replace(member, wires=body.wires)
    had = True
    if path.names_me != before.names_me or was_silent:
        had = _has_two_way(draft, channel)
        draft.watch(draft.now)
    if was_silent:
        member = _came_back(draft, member, before)
    member = draft.put_path(member, channel, path)
    if was_silent:
        send_beat(draft, channel, member.id)
    if isinstance(body, Beat):
        _note_wire(draft, channel, member, path, had_two_way=had)
        _compare(draft, channel, member)
    return member


def _merge_ages(before: Path, beat: Beat) -> Mapping[MemberId, float]:
    """Of a part: with what the others said last. A part that is lost makes ages too short, which confirms nothing."""
    if beat.high == 0:
        return beat.ages_s
    kept = {member: age_s for member, age_s in before.ages_s.items() if not beat.is_about(member)}
    return {**kept, **beat.ages_s}


def _came_back(draft: Draft, member: Member, before: Path) -> Member:
    """It ranks last for a minute, unless another channel had it all along."""
    if any(is_heard(draft, path) for path in member.paths.values()):
        return member
    if before.heard_s > NEVER and draft.now - member.since_s >= draft.detect_s:
        draft.report(Note.MEMBER_BACK, member=member.id)
        return replace(member, since_s=draft.now)
    return member


def _has_two_way(draft: Draft, channel: Channel) -> bool:
    wire = draft.wires.get(channel)
    return wire is None or bool(two_way(draft, wire))


def _note_wire(draft: Draft, channel: Channel, member: Member, path: Path, *, had_two_way: bool) -> None:
    """The roster, and since when this node's own way is proven (F4)."""
    wire = draft.wires.get(channel)
    if wire is None:
        return
    if path.names_me and member.id not in wire.roster:
        wire = replace(wire, roster=wire.roster | {member.id}, blind=False)
        draft.put_wire(wire)
    if wire.alone:
        wire = replace(wire, alone=False, blind=False)
        draft.put_wire(wire)
    if path.names_me and not had_two_way:
        draft.put_wire(replace(wire, proven_s=draft.now))
    shorten_listening(draft, draft.wires[channel])


def _compare(draft: Draft, channel: Channel, member: Member) -> None:
    """Ask for its claims if they aren't what we believe; once an interval."""
    tally = draft.tallies.get(member.id, NOTHING)
    if (tally.digest, tally.size) == (member.digest, member.count):
        return
    if draft.now - member.wanted_s >= draft.timing.interval_s / 2:
        draft.put_member(replace(draft.members[member.id], wanted_s=draft.now))
        draft.send(channel, Want(), member.id)


def watch_members(draft: Draft) -> None:
    """Note who fell silent, and whose keys that concerns; look for majorities won and lost."""
    for member in draft.members.values():
        for channel, path in member.paths.items():
            if path.silent:
                continue
            if not is_heard(draft, path):
                _fell_silent(draft, draft.members[member.id], channel, path)
            else:
                draft.watch(path.heard_s + draft.detect_s)
    for wire in draft.wires.values():
        _watch_majority(draft, wire)


def _fell_silent(draft: Draft, member: Member, channel: Channel, path: Path) -> None:
    draft.put_path(member, channel, replace(path, silent=True))
    affected = [wire.name for wire in draft.wires.values() if channel_of(wire) == channel]
    for name in affected:
        draft.put_wire(replace(draft.wires[name], loss_s=draft.now))
        draft.report(Note.MEMBER_SILENT, member=member.id, detail=name)
    for key in tuple(draft.owned.get(member.id, ())):
        if key.wire in affected:
            draft.note_busy(draft.holds[key])
    if any(draft.holds[key].giver == member.id for key in draft.mine):
        draft.hurry()


def _watch_majority(draft: Draft, wire: Wire) -> None:
    has = has_majority(draft, wire)
    if has and wire.majority_s == LATER:
        draft.put_wire(replace(wire, majority_s=draft.now))
        draft.report(Note.MAJORITY_BACK, detail=wire.name)
    elif not has and wire.majority_s != LATER:
        draft.put_wire(replace(wire, majority_s=LATER, minority_s=draft.now))
        draft.report(Note.MAJORITY_LOST, detail=wire.name)


def watch_blindness(draft: Draft) -> None:
    """Where members say that they are on the wire, and none was ever heard there, the node network judges (F13)."""
    for wire in draft.wires.values():
        here = frozenset(
            member.id
            for member in draft.members.values()
            if wire.name in member.wires and is_heard(draft, member.path(NODE_NETWORK))
        )
        never = not any(member.path(wire.name).heard_s > NEVER for member in draft.members.values())
        if never and here and draft.now - draft.base.up_s >= 2 * draft.detect_s:
            if not wire.blind:
                draft.report(Note.WIRE_BLIND, detail=wire.name)
            if not wire.blind or here - wire.roster:
                draft.put_wire(replace(wire, blind=True, roster=wire.roster | here))
