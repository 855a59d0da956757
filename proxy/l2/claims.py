"""Rule 2: the newest claim stands, and whoever knows a newer one says so."""

from collections.abc import Iterable

from msgspec.structs import replace

from proxy.l2.actions import Note
from proxy.l2.draft import Draft
from proxy.l2.election import NO_HEIRS, Heirs, choose_heirs
from proxy.l2.messages import Claims, ClaimState, Release
from proxy.l2.placing import standings
from proxy.l2.state import Hold, Member
from proxy.l2.types import (
    LATER,
    MASK,
    NEVER,
    NOBODY,
    NODE_NETWORK,
    OWNING,
    Channel,
    Key,
    MemberId,
    Mine,
    Version,
    key_hash,
)

ANNOUNCE_AGAIN_S = 1.0  # a key that a lower claim disputes is announced at most so often
HANDED_OVER_S = 2  # intervals that the old owner lingers after the new one has announced


def hear_claims(draft: Draft, member: Member, claims: Claims) -> None:
    """Take in what it owns, and answer what is out of date."""
    listed = set()
    answers: list[ClaimState] = []
    for entry in claims.entries:
        listed.add(entry.key)
        answer = _hear_claim(draft, member, entry, listed=claims.low < claims.high)
        if answer is not None:
            answers.append(answer)
    if claims.low < claims.high:
        for key in sorted(draft.owned.get(member.id, ())):
            if claims.low <= key_hash(key) < claims.high and key not in listed:
                orphan(draft, draft.holds[key], at_once=False)
    if answers:
        tell(draft, answers, member.id)


def _hear_claim(draft: Draft, member: Member, entry: ClaimState, *, listed: bool) -> ClaimState | None:
    hold = draft.hold(entry.key)
    if entry.version.owner == draft.me:
        return _hear_of_myself(draft, hold, entry)
    if entry.version < hold.known:
        return _contradict(draft, hold, entry)
    if member.id != entry.version.owner:
        entry = replace(entry, quiet=True)  # nobody but the owner knows that clients were told
    if entry.released:
        # A list tells what nobody has; only a word of its own says that the owner let go now.
        _hear_release(draft, (hold, member.id), entry, at_once=member.id == entry.version.owner and not listed)
    elif entry.version > hold.known:
        follow(draft, hold, entry)
    elif hold.owner == entry.version.owner:
        draft.put_hold(replace(hold, heirs=entry.heirs))
        if not entry.quiet and hold.mine is Mine.LINGER:
            _told_clients(draft, draft.holds[hold.key])
    elif hold.owner == NOBODY and member.id == entry.version.owner:
        draft.put_hold(replace(hold, owner=member.id, heirs=entry.heirs, take_s=None, probes=0))
    return None


def _hear_of_myself(draft: Draft, hold: Hold, entry: ClaimState) -> ClaimState | None:
    """Others remember a claim of an earlier start of ours. It is ours to go beyond; nobody else has it."""
    if entry.version <= hold.known:
        return _contradict(draft, hold, entry) if entry.version < hold.known and not entry.released else None
    if hold.owner == draft.me:
        own(draft, replace(hold, known=entry.version), hold.mine)
    else:
        draft.put_hold(replace(hold, known=entry.version))
        orphan(draft, draft.holds[hold.key], at_once=False)
    return None


def _contradict(draft: Draft, hold: Hold, entry: ClaimState) -> ClaimState | None:
    """What is known instead. A claim of our own comes with one packet for clients that heard the other."""
    if entry.released or draft.now - hold.claimed_s < draft.timing.look_s:
        return None
    if hold.owner == draft.me:
        again = draft.now - hold.repeated_s >= ANNOUNCE_AGAIN_S and hold.mine is Mine.HOLD
        changed = replace(hold, claimed_s=draft.now)
        if again:
            changed = replace(changed, announce_s=min(hold.announce_s, draft.now), repeated_s=draft.now)
        draft.put_hold(changed)
        return state_of(changed)
    draft.put_hold(replace(hold, claimed_s=draft.now))
    return state_of(hold)


def _hear_release(draft: Draft, heard: tuple[Hold, MemberId], entry: ClaimState, *, at_once: bool) -> None:
    """Nobody has it, says its owner, or one who has only lost sight of an owner: then everybody waits."""
    hold, sender = heard
    if entry.version > hold.known:
        stop(draft, hold, Note.REPLACED)
        draft.put_hold(replace(draft.hold(hold.key), known=entry.version))
        orphan(draft, draft.holds[hold.key], at_once=at_once)
    elif hold.owner == entry.version.owner == sender:
        orphan(draft, hold, at_once=at_once)


def follow(draft: Draft, hold: Hold, entry: ClaimState) -> None:
    """A newer owner. If we had offered it the key, its cached clients stay with us for the grace time."""
    mine, until_s = Mine.NONE, LATER
    offered = hold.offered
    if hold.mine in OWNING and offered is not None and entry.version.owner in offered.tried:
        draft.report(Note.GIVEN, hold.key, entry.version.owner)
        if offered.quiet:
            mine, until_s = Mine.LINGER, draft.now + draft.settings.grace_s + draft.detect_s
    elif hold.mine in OWNING:
        draft.report(Note.REPLACED, hold.key, entry.version.owner)
    elif hold.mine is Mine.LINGER and entry.quiet:
        mine, until_s = hold.mine, hold.until_s
    draft.put_hold(
        Hold(
            hold.key,
            known=entry.version,
            owner=entry.version.owner,
            heirs=entry.heirs,
            mine=mine,
            until_s=until_s,
            since_s=draft.now,
            barred_s=hold.barred_s,
            resort_s=hold.resort_s,
            claimed_s=hold.claimed_s,
        )
    )
    if mine is Mine.LINGER and not entry.quiet:
        _told_clients(draft, draft.holds[hold.key])


def _told_clients(draft: Draft, hold: Hold) -> None:
    """The new owner has announced: clients come to it now, so that we linger for stragglers only."""
    soon = draft.now + HANDED_OVER_S * draft.timing.interval_s
    draft.put_hold(replace(hold, until_s=min(hold.until_s, soon)))


def orphan(draft: Draft, hold: Hold, *, at_once: bool) -> None:
    """Nobody owns the key; `at_once`: its owner said so, and nobody needs to wait."""
    mine = Mine.NONE if hold.mine in OWNING else hold.mine
    draft.put_hold(
        replace(
            hold,
            owner=NOBODY,
            mine=mine,
            since_s=draft.now,
            orphan_s=draft.now,
            at_once=at_once,
            take_s=None,
            probes=0,
            offered=None,
            until_s=hold.until_s if mine is Mine.LINGER else LATER,
            giver=NOBODY,
            announce_s=LATER,
            unfit_s=LATER,
            better_s=LATER,
        )
    )


def stop(draft: Draft, hold: Hold, note: Note) -> None:
    """Answer no more, without a packet; whoever owns it isn't known."""
    if hold.mine is not Mine.NONE:
        draft.report(note, hold.key)
        orphan(draft, replace(hold, mine=Mine.NONE), at_once=False)


def own(draft: Draft, hold: Hold, mine: Mine, until_s: float = LATER, giver: MemberId = NOBODY) -> None:
    """Claim the key, beyond all that is known. The claim goes out before the first packet for clients."""
    draft.put_hold(
        Hold(
            hold.key,
            known=Version(hold.known.epoch + 1, draft.me),
            owner=draft.me,
            mine=mine,
            since_s=draft.now,
            until_s=until_s,
            giver=giver,
            resort_s=hold.resort_s,
            announce_s=draft.now if mine is Mine.HOLD else LATER,
            asked_s=hold.asked_s,
            foreign=hold.foreign,
        )
    )
    draft.claimed[hold.key] = None
    if draft.state.reviewed is not None:
        draft.set(reviewed=None)


def release(draft: Draft, hold: Hold, note: Note = Note.RELEASED) -> None:
    """Let go of a key that is ours, and say so everywhere: whoever is fit takes it at once."""
    draft.report(note, hold.key)
    version = hold.known
    orphan(draft, hold, at_once=True)
    draft.released.append(ClaimState(hold.key, version, released=True))


def flush_claims(draft: Draft) -> None:
    """Tell what this step let go and claimed, with heirs, in one message each."""
    if draft.released:
        tell(draft, draft.released)
        draft.released = []
    claimed = [draft.holds[key] for key in draft.claimed if draft.holds[key].owner == draft.me]
    draft.claimed.clear()
    if not claimed:
        return
    heirs = heirs_of(draft, [hold.key for hold in claimed])
    for hold in claimed:
        if heirs.get(hold.key, NO_HEIRS) != hold.heirs:
            draft.put_hold(replace(hold, heirs=heirs.get(hold.key, NO_HEIRS)))
    tell(draft, [state_of(draft.holds[hold.key]) for hold in claimed])


def heirs_of(draft: Draft, keys: Iterable[Key]) -> dict[Key, Heirs]:
    """Who should have each key after us, by our view; one node's choice, so a cap on loads holds (F1)."""
    vips = [vip for key in keys if (vip := draft.vip(key)) is not None]
    found: dict[Key, Heirs] = {}
    for wire in {vip.key.wire for vip in vips}:
        here = [vip for vip in vips if vip.key.wire == wire]
        found |= choose_heirs(here, standings(draft, wire), draft.me)
    return found


def tell(draft: Draft, entries: list[ClaimState], to: MemberId = NOBODY) -> None:
    """Claims as a change, on their wires and on the node network."""
    by_wire: dict[Channel, list[ClaimState]] = {}
    for entry in entries:
        by_wire.setdefault(entry.key.wire, []).append(entry)
    for wire, here in by_wire.items():
        if wire in draft.wires:
            draft.send(wire, Claims(tuple(here)), to)
    draft.send(NODE_NETWORK, Claims(tuple(entries)), to)


def tell_all(draft: Draft, channel: Channel, to: MemberId) -> None:
    """Every claim of ours, and what is known of keys that nobody has: epochs never fall.

    What no table of ours names isn't told, else those who have forgotten it would learn it again for ever.
    """
    vips = draft.state.table.vips
    entries = [
        state_of(hold)
        for key, hold in draft.holds.items()
        if hold.owner == draft.me or (hold.known.epoch and hold.owner == NOBODY and key in vips)
    ]
    draft.send(channel, Claims(tuple(entries), 0, MASK + 1), to)


def state_of(hold: Hold) -> ClaimState:
    """The key as a claim: ours, another's that we know of, or nobody's."""
    return ClaimState(
        hold.key,
        hold.known,
        hold.heirs if hold.owner != NOBODY else NO_HEIRS,
        quiet=hold.mine is Mine.QUIET,
        released=hold.owner == NOBODY,
    )


def hear_release_wish(draft: Draft, member: Member, wish: Release) -> None:
    """Others hear us on the node network only. Agree if our own carrier or gateway fails (F13)."""
    wire = draft.wires.get(wish.wire)
    if wire is None or (wire.carrier and not _gateway_fails(draft, wish.wire)):
        if wire is not None:
            draft.put_wire(replace(wire, loss_s=draft.now))
        return
    for key in sorted(draft.mine):
        hold = draft.holds[key]
        if key.wire == wish.wire and hold.owner == draft.me:
            release(draft, hold)
    draft.report(Note.RELEASED, member=member.id, detail=wish.wire)


def _gateway_fails(draft: Draft, wire_name: Channel) -> bool:
    """It has answered before, was asked again and again since, and is silent for the time of detection."""
    wire = draft.wires[wire_name]
    was_asked = draft.now - wire.echo_s < draft.detect_s
    return wire.gateway_ok_s > NEVER and was_asked and draft.now - wire.gateway_ok_s >= draft.detect_s


def forget(draft: Draft, member: MemberId) -> None:
    """It left for good: all that it owned is free at once."""
    for key in sorted(draft.owned.get(member, ())):
        orphan(draft, draft.holds[key], at_once=True)
