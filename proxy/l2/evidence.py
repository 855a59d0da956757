"""Rules 3 and 8: what frames on the wire say, and which requests are answered."""

from collections.abc import Iterable
from enum import StrEnum

from msgspec.structs import replace

from proxy.l2.actions import Note, Reply
from proxy.l2.claims import own, stop
from proxy.l2.draft import Draft
from proxy.l2.events import ArpKind, ArpSeen
from proxy.l2.guard import saw_frame
from proxy.l2.hearing import has_majority, is_heard
from proxy.l2.shares import choose_sharer
from proxy.l2.spreading import find_share, note_client
from proxy.l2.state import Foreign, Hold, Member, State
from proxy.l2.types import NOBODY, OWNING, Key, Mine

OLDEST_S = 0.1  # a request that waited longer is not answered
DEFEND_S = 10.0  # RFC 5227: at most one packet against a foreign host in so long
MAX_CONFLICTS = 10  # RFC 5227: attempts in a row that a foreign host answered; then they come slower
RATE_LIMIT_INTERVAL_S = 60.0  # RFC 5227
CONFLICT_S = RATE_LIMIT_INTERVAL_S + 10.0  # a foreign host that wasn't seen for so long is gone: longer than any pause
ASKED_S = 1.0  # how exactly it is known when a client asked last


class NoAnswer(StrEnum):
    """Why a request isn't answered; stable codes."""

    ANSWERED = "answered"
    NOT_OURS = "not-ours"
    LISTENING = "listening"
    SUSPENDED = "suspended"
    NO_CARRIER = "no-carrier"
    TOO_OLD = "too-old"
    OTHERS_CLIENT = "others-client"  # the address is shared, and another member answers this client
    LINGERING = "lingering"  # a broadcast: the new owner answers
    STOOD_STILL = "stood-still"  # this process may have been replaced meanwhile
    STOPPED = "stopped"


def choose_answer(state: State, now: float, request: ArpSeen) -> NoAnswer:
    """Whether to answer a request now. A function of the state alone, so that a busy responder needs no step.

    A quiet owner answers what comes to its own MAC, too: only who has already learned it from an answer sends that.
    The one before answers nothing but its own MAC, so no request ever has two answers.
    """
    key = Key(request.vip, request.wire)
    hold = state.holds.get(key)
    wire = state.wires.get(request.wire)
    share = find_share(state, request)
    has = state.me in share.members if share is not None else hold is not None and hold.mine is not Mine.NONE
    if hold is None or not has or wire is None:
        return NoAnswer.NOT_OURS
    if state.stopped:
        return NoAnswer.STOPPED
    if now - state.last_step_s > state.settings.timing.detect_s / 2:
        return NoAnswer.STOOD_STILL
    if not wire.carrier:
        return NoAnswer.NO_CARRIER
    if wire.suspended:
        return NoAnswer.SUSPENDED
    if now < wire.listen_until_s:
        return NoAnswer.LISTENING
    if request.age_s > OLDEST_S:
        return NoAnswer.TOO_OLD
    if share is not None and request.asker is not None:
        ours = choose_sharer(key, request.asker, share.members) == state.me
        return NoAnswer.ANSWERED if ours else NoAnswer.OTHERS_CLIENT
    return NoAnswer.LINGERING if request.broadcast and hold.mine is Mine.LINGER else NoAnswer.ANSWERED


def see_arp(draft: Draft, event: ArpSeen) -> None:
    """A frame about one of the addresses."""
    saw_frame(draft, draft.wires.get(event.wire))
    hold = draft.holds.get(Key(event.vip, event.wire))
    if hold is None or event.wire not in draft.wires:
        return
    if event.kind is ArpKind.REQUEST:
        _see_request(draft, event, hold)
        return
    member = _member_of(draft, event)
    if event.kind is ArpKind.REPLY:
        _see_reply(draft, event, hold, member)
    else:
        _see_gratuitous(draft, event, hold, member)


def _see_request(draft: Draft, event: ArpSeen, hold: Hold) -> None:
    note_client(draft, event)
    # The guard has passed in this step, so the state is as fresh as now.
    state = replace(draft.state, wires=draft.wires, holds=draft.holds, last_step_s=draft.now)
    if choose_answer(state, draft.now, event) is NoAnswer.ANSWERED:
        draft.actions.append(Reply(hold.key))
        if draft.now - hold.asked_s > ASKED_S:
            draft.put_hold(replace(hold, asked_s=draft.now))


def _member_of(draft: Draft, event: ArpSeen) -> Member | None:
    for member in draft.members.values():
        if event.mac and member.path(event.wire).mac == event.mac:
            return member
    return None


def _see_reply(draft: Draft, event: ArpSeen, hold: Hold, member: Member | None) -> None:
    """A member that answers lives, whatever its heartbeats do."""
    if member is None:
        _see_foreign(draft, event, hold)
        return
    path = member.path(event.wire)
    if not is_heard(draft, path) and path.looks:
        draft.report(Note.PARTITION, hold.key, member.id, event.wire)
    draft.put_path(member, event.wire, replace(path, seen_s=draft.now, looks=0))
    if hold.take_s is not None or hold.probes:
        draft.put_hold(replace(hold, take_s=None, probes=0))


def _see_gratuitous(draft: Draft, event: ArpSeen, hold: Hold, member: Member | None) -> None:
    """Somebody tells everybody that the address is its own. Between members that hear each other claims decide."""
    if member is None:
        _see_foreign(draft, event, hold)
        return
    path = member.path(event.wire)
    if hold.owner != draft.me or is_heard(draft, path):
        return
    wire = draft.wires[event.wire]
    if wire.roster and has_majority(draft, wire):
        own(draft, hold, Mine.HOLD)
        draft.report(Note.DEFENDED, hold.key, member.id)
    else:
        give_in(draft, hold)


def give_in(draft: Draft, hold: Hold) -> None:
    """Yield on evidence that another has the key, and leave it alone for a while."""
    stop(draft, hold, Note.YIELDED)
    draft.put_hold(replace(draft.holds[hold.key], barred_s=draft.now + draft.timing.bar_s, yielded=True))


def is_in_use(hold: Hold, now: float) -> bool:
    """Whether a foreign host has answered lately for a key that no member owns: then it is left alone.

    After ten attempts that it answered the next ones come once a minute.
    """
    if hold.owner != NOBODY or hold.foreign is None:
        return False
    wait_s = RATE_LIMIT_INTERVAL_S if hold.foreign.conflicts >= MAX_CONFLICTS else DEFEND_S
    return now - hold.foreign.seen_s < wait_s


def find_foreign(members: Iterable[Member], hold: Hold, now: float) -> str:
    """The MAC of a foreign host that has answered within CONFLICT_S; "": none, or it turned out to be a member's."""
    seen = hold.foreign
    if seen is None or now - seen.seen_s >= CONFLICT_S:
        return ""
    return "" if any(member.path(hold.key.wire).mac == seen.mac for member in members) else seen.mac


def _note_foreign(hold: Hold, mac: str, now: float) -> Foreign:
    """With the attempts in a row that were answered, by whatever host; one is under way from its turn on."""
    before = hold.foreign
    answered = hold.owner == NOBODY and (hold.take_s is not None or hold.probes > 0)
    if before is None or now - before.seen_s >= CONFLICT_S:
        return Foreign(mac, now, now, int(answered))
    return Foreign(mac, before.since_s if before.mac == mac else now, now, before.conflicts + answered)


def _see_foreign(draft: Draft, event: ArpSeen, hold: Hold) -> None:
    """A host that we don't know answers for the address: a foreign one, or a member that we can't hear.

    Say so. An owner with a majority defends (RFC 5227); one without lets the gateway judge. Others don't take it.
    """
    lately = draft.now - hold.defended_s < DEFEND_S
    changed = replace(hold, foreign=_note_foreign(hold, event.mac, draft.now))
    if not lately:
        draft.report(Note.ADDRESS_CONFLICT, hold.key, detail=event.mac)
        changed = replace(changed, defended_s=draft.now)
    if hold.mine in OWNING:
        wire = draft.wires[event.wire]
        if wire.roster and has_majority(draft, wire):
            if not lately and hold.mine is Mine.HOLD:
                changed = replace(changed, announce_s=min(hold.announce_s, draft.now))
        else:
            changed = replace(changed, contested=True)
    elif hold.owner == NOBODY:
        changed = replace(changed, take_s=None, probes=0)
    draft.put_hold(changed)
    draft.hurry()
