"""Rule 6: take a key, but only from the dead, on a majority's fresh word, and after a look on the wire.

All of it is asked anew at every step until our turn comes, so whatever changes on the way ends the attempt.
"""

from enum import StrEnum

from msgspec.structs import replace

from proxy.l2.actions import Look, Note, Probe
from proxy.l2.candidates import Why
from proxy.l2.claims import own
from proxy.l2.draft import Draft
from proxy.l2.election import NO_HEIRS
from proxy.l2.evidence import is_in_use
from proxy.l2.hearing import (
    channel_of,
    confirms,
    death_s,
    is_fresh_majority,
    is_heard,
    majority_back,
    roster_size,
    speaks,
)
from proxy.l2.messages import Release
from proxy.l2.placing import place_of, places_before
from proxy.l2.state import NO_PATH, NOTHING, Hold, Member, Wire
from proxy.l2.types import NEVER, NOBODY, NODE_NETWORK, OWNING, Channel, MemberId, Mine, WithoutMajority

SUSPECT = 0.45  # of the detection time: looks begin
LOOKS = 2  # unanswered, at the least
MANY_LOOKS = 40  # then they come slower
SAMPLE = 3  # addresses of a suspect that are looked at
PAIR = 2  # members: the gateway is the second vote
LARGEST_RESORT = 7  # members of a roster that may use the last resort
LAST_RANK_STEPS = 10


class Ground(StrEnum):
    """Why a key may be taken, or that it may not yet."""

    NOT_YET = "not-yet"
    MAJORITY = "majority"
    GATEWAY = "gateway"  # two members: the gateway is the second vote
    RESORT = "last-resort"


Grounds = dict[tuple[MemberId, Channel], Ground]
Ripe = dict[tuple[Channel, float, bool], float]  # of keys that lost their owner at the same time in the same way


def look_at_suspects(draft: Draft) -> None:
    """Ask members that fall silent by unicast ARP for what they own, from 45 % of the detection time on."""
    for wire in draft.wires.values():
        for member in list(draft.members.values()):
            path = member.path(wire.name)
            if member.left or path is NO_PATH or not draft.tallies.get(member.id, NOTHING).size:
                continue
            gap = draft.timing.look_s if path.looks < MANY_LOOKS else draft.timing.interval_s
            due = max(_last_sign(member, wire) + SUSPECT * death_s(draft, member), path.look_s + gap)
            if not path.mac or draft.now < due:
                # In a crowd the next look at everything comes soon enough, and mostly finds that the member spoke.
                draft.watch(max(due, draft.due_s if draft.crowded else draft.now + draft.timing.look_s))
                continue
            _look(draft, wire, member)


def _look(draft: Draft, wire: Wire, member: Member) -> None:
    path = member.path(wire.name)
    sample = sorted(key for key in draft.owned.get(member.id, ()) if key.wire == wire.name)[:SAMPLE]
    if not sample:
        return
    draft.actions += [Look(key, path.mac) for key in sample]
    draft.put_path(member, wire.name, replace(path, looks=path.looks + 1, look_s=draft.now))
    draft.watch(draft.now + draft.timing.look_s)


def _last_sign(member: Member, wire: Wire) -> float:
    """Of life on the wire; where it is blind, on the node network."""
    return max(member.path(channel_of(wire)).heard_s, member.path(wire.name).seen_s)


def must_wait(draft: Draft, hold: Hold, ripe: Ripe) -> bool:
    """Whether the key is nobody's and the time for that isn't over; `ripe`: what this step has found of others."""
    if hold.owner != NOBODY or hold.take_s is not None or _is_remembered(draft, hold):
        return False
    likes = hold.key.wire, hold.orphan_s, hold.at_once
    ripe_s = ripe.get(likes)
    if ripe_s is None:
        wire = draft.wires.get(hold.key.wire)
        ripe_s = ripe[likes] = _ripe_s(draft, wire, hold) if wire is not None else NEVER
        if draft.now < ripe_s:
            draft.hurry(ripe_s)
    return draft.now < ripe_s


def consider(draft: Draft, hold: Hold, grounds: Grounds) -> None:
    """Take the key if it is our turn, or note when it will be; `grounds`: what this step has found of its owners."""
    key = hold.key
    wire = draft.wires.get(key.wire)
    if wire is None or hold.owner == draft.me or draft.fit(key) is not Why.ELIGIBLE or not draft.may_be_free(hold):
        draft.note_busy(hold)
        return
    owner = draft.members.get(hold.owner)
    if owner is None or owner.left or not (owner.path(channel_of(wire)).heard_s > NEVER):
        ground = _orphan_ground(draft, wire, hold, grounds)
        if hold.owner != NOBODY and ground is Ground.MAJORITY and not confirms(draft, wire, hold.owner):
            ground = Ground.NOT_YET  # others told of the owner, and hear it
        owner = None
    else:
        ground = grounds.get((owner.id, wire.name)) or _ground(draft, wire, owner)
        grounds[owner.id, wire.name] = ground
    if hold.yielded and ground is not Ground.NOT_YET and not majority_back(draft, wire):
        ground = Ground.RESORT if draft.now - hold.since_s >= _resort_s(draft, wire) else Ground.NOT_YET
    if ground is Ground.RESORT:
        ground = _may_resort(draft, wire, hold)
    elif hold.barred_s > draft.now and not majority_back(draft, wire):
        ground = Ground.NOT_YET
    if is_in_use(hold, draft.now):
        ground = Ground.NOT_YET
    if ground is Ground.NOT_YET or not speaks(draft, wire):
        if hold.take_s is not None:
            draft.put_hold(replace(hold, take_s=None, probes=0))
        return
    _await_turn(draft, hold, ground, needs_probes=owner is None and not hold.at_once)


def _await_turn(draft: Draft, hold: Hold, ground: Ground, *, needs_probes: bool) -> None:
    before = hold
    if hold.take_s is None:
        delay = _rank_steps(draft, hold) * draft.timing.rank_step_s
        if needs_probes:
            delay = max(delay, LOOKS * draft.timing.look_s)
        hold = replace(hold, take_s=draft.now + delay)
    take_s = hold.take_s if hold.take_s is not None else draft.now
    probes = needs_probes and hold.probes < LOOKS
    if probes:
        due = max(take_s - (LOOKS - hold.probes) * draft.timing.look_s, hold.probe_s + draft.timing.look_s)
        if draft.now >= due:
            draft.actions.append(Probe(hold.key))
            hold = replace(hold, probes=hold.probes + 1, probe_s=draft.now)
        draft.hurry(max(due, draft.now + draft.timing.look_s))
    elif needs_probes:
        take_s = max(take_s, hold.probe_s + draft.timing.look_s)
    if not probes and draft.now < take_s:
        draft.hurry(take_s)
    if probes or draft.now < take_s:
        if hold is not before:  # once: a step changes only so many
            draft.put_hold(hold)
        return
    draft.report(Note.LAST_RESORT if ground is Ground.RESORT else Note.TAKEN, hold.key, hold.owner)
    if needs_probes:  # which nobody answered: a foreign host that had it has left
        hold = replace(hold, foreign=None)
    own(draft, replace(hold, resort_s=draft.now) if ground is Ground.RESORT else hold, Mine.HOLD)


def _rank_steps(draft: Draft, hold: Hold) -> int:
    """The heirs that the owner named come first; then whoever the election puts first; in steps, at most ten."""
    if hold.heirs != NO_HEIRS and draft.me in hold.heirs:
        return hold.heirs.index(draft.me)
    vip = draft.vip(hold.key)
    if vip is None:
        return LAST_RANK_STEPS
    if hold.heirs == NO_HEIRS and (_is_remembered(draft, hold) or place_of(draft, hold.key) == draft.me):
        return 0
    place = places_before(draft, vip, hold.heirs)
    return min(2 + place, LAST_RANK_STEPS) if place is not None else LAST_RANK_STEPS


def _ground(draft: Draft, wire: Wire, owner: Member) -> Ground:
    """Whether the owner counts as dead on this wire."""
    timing = draft.timing
    sign_s = _last_sign(owner, wire)
    death = sign_s + death_s(draft, owner)
    if draft.now < death:
        draft.hurry(death)
        return Ground.NOT_YET
    if draft.now - wire.proven_s < draft.detect_s:
        draft.hurry(wire.proven_s + draft.detect_s)
        return Ground.NOT_YET
    if not wire.blind and is_heard(draft, owner.path(NODE_NETWORK)):
        _ask_release(draft, wire, owner)
        return Ground.NOT_YET
    path = owner.path(wire.name)
    draft.hurry(draft.now + timing.look_s)
    if path.mac and path.looks < LOOKS:
        return Ground.NOT_YET
    if confirms(draft, wire, owner.id):
        return Ground.MAJORITY
    if roster_size(draft, wire) == PAIR and wire.gateway_ok_s > sign_s + SUSPECT * draft.detect_s:
        return Ground.GATEWAY
    return Ground.RESORT if draft.now - sign_s >= _resort_s(draft, wire) else Ground.NOT_YET


def _ask_release(draft: Draft, wire: Wire, owner: Member) -> None:
    path = owner.path(wire.name)
    if draft.now - path.release_s >= draft.timing.interval_s:
        draft.put_path(owner, wire.name, replace(path, release_s=draft.now))
        draft.send(NODE_NETWORK, Release(wire.name), owner.id)
    draft.hurry(draft.now + draft.timing.interval_s)


def _orphan_ground(draft: Draft, wire: Wire, hold: Hold, grounds: Grounds) -> Ground:
    """A key of nobody: at once if it was let go; else everybody waits until members and claims are known (F15)."""
    ripe = _ripe_s(draft, wire, hold)
    if draft.now < ripe:
        draft.hurry(ripe)
        return Ground.NOT_YET
    draft.hurry(draft.now + draft.timing.look_s)
    ground = grounds.get((NOBODY, wire.name)) or _votes_for_orphans(draft, wire)
    grounds[NOBODY, wire.name] = ground
    if ground is not Ground.RESORT:
        return ground
    since = max(hold.orphan_s, wire.minority_s)
    return Ground.RESORT if draft.now - since >= _resort_s(draft, wire) else Ground.NOT_YET


def _votes_for_orphans(draft: Draft, wire: Wire) -> Ground:
    if is_fresh_majority(draft, wire):
        return Ground.MAJORITY
    pair = roster_size(draft, wire) == PAIR
    return Ground.GATEWAY if pair and draft.now - wire.gateway_ok_s < 2 * draft.timing.interval_s else Ground.RESORT


def _is_remembered(draft: Draft, hold: Hold) -> bool:
    """Whether an earlier process of this boot had it, and nobody has claimed it since."""
    remembered = draft.base.memory.held.get(hold.key)
    return remembered is not None and hold.known <= remembered


def _ripe_s(draft: Draft, wire: Wire, hold: Hold) -> float:
    if _is_remembered(draft, hold):
        return wire.listen_until_s
    proven = wire.proven_s + draft.detect_s
    if hold.at_once:
        return max(hold.orphan_s, proven)
    timing = draft.timing
    wait = max(hold.orphan_s + draft.detect_s, draft.base.joined_s + timing.settle_s)
    return max(proven, min(wait, hold.orphan_s + timing.longest_settle_s))


def _resort_s(draft: Draft, wire: Wire) -> float:
    """How long to wait where no majority is left.

    Longer where the API says that the silent are well, or no gateway can say that we aren't the ones who are cut off.
    """
    timing = draft.timing
    api_doubts = draft.state.table.peers_ready and not draft.is_stale()
    witness = draft.now - wire.gateway_ok_s < draft.detect_s
    return timing.last_resort_s if witness and not api_doubts else timing.long_last_resort_s


def _may_resort(draft: Draft, wire: Wire, hold: Hold) -> Ground:
    """Small rosters only, once for each loss of a majority, and never against a gateway that stopped answering."""
    allowed = draft.settings.without_majority is WithoutMajority.LAST_RESORT
    small = roster_size(draft, wire) <= LARGEST_RESORT
    used = hold.resort_s > wire.minority_s or draft.now - hold.resort_s < draft.timing.bar_s
    deaf = wire.gateway_ok_s > NEVER and draft.now - wire.gateway_ok_s >= draft.detect_s
    return Ground.RESORT if allowed and small and not used and not deaf and hold.mine not in OWNING else Ground.NOT_YET
