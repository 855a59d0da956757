"""Rules 4 and 5: the owner gives a key away, and nobody else can. Why, to whom, and how loudly."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from msgspec.structs import replace

from proxy.l2.actions import Note
from proxy.l2.candidates import Candidate, Vip, Why
from proxy.l2.claims import own, release
from proxy.l2.draft import Draft
from proxy.l2.election import Standing, rank
from proxy.l2.hearing import channel_of, is_up, speaks
from proxy.l2.messages import Offer
from proxy.l2.placing import others_are_fresh, standings
from proxy.l2.state import Hold, Member, Offered
from proxy.l2.types import LATER, NOBODY, NODE_NETWORK, OWNING, Channel, Key, MemberId, Mine, Tier, member_id

BETTER_S = 60.0  # how long another must be better before a key of policy Cluster moves (F11)
SPREAD_S = 10.0  # one key in so long
STABLE_S = 60.0
SLACK = 10  # an owner keeps a tenth more than its share: a move costs somebody's connections
UNFIT_S = 1.0  # how long an owner without an endpoint answers while nobody takes the key
FORBIDDEN_S = 10.0  # and one that isn't wanted any more: what it answers for works, so there is time to find another
ANSWER_INTERVALS = 2
RETRY_S = 5.0
ASTRAY = frozenset({Why.NO_LOCAL_ENDPOINT, Why.NOT_PROGRAMMED})
FORBIDDEN = frozenset({Why.NO_ADVERTISEMENT, Why.PINNED_ELSEWHERE, Why.UNKNOWN_INTERFACE, Why.OTHER_INTERFACE})
LOUD = frozenset({Why.NO_LOCAL_ENDPOINT, Why.NOT_PROGRAMMED, Why.NO_INTERFACE, Why.NO_CARRIER})


class Cause(StrEnum):
    """Why an owner would rather not be one."""

    NONE = "none"
    UNFIT = "unfit"
    DRAINING_ENDPOINTS = "draining-endpoints"
    CLOSER = "closer"
    PREFERRED = "preferred"
    STALE = "stale"


class Targets(NamedTuple):
    """Who may be offered a key, the best first, and what is wrong with us."""

    cause: Cause
    members: tuple[MemberId, ...]
    waits_s: float  # how long the cause must last


def review(draft: Draft, hold: Hold, up: dict[MemberId, Standing]) -> None:
    """Whether there is a cause to give this key of ours away; starts and stops its clock, and offers when it is due."""
    vip = draft.vip(hold.key)
    if vip is None:
        release(draft, hold)
        return
    why = draft.fit(hold.key)
    if why in {Why.NO_CARRIER, Why.NO_INTERFACE}:
        release(draft, hold)
        return
    targets = _targets(draft, hold, vip, up)
    since_s = hold.better_s if hold.better_s != LATER else draft.now
    if targets.cause is Cause.NONE:
        in_vain = hold.offered is not None and draft.now - hold.offered.at_s > RETRY_S
        if hold.better_s != LATER or hold.unfit_s != LATER or in_vain:
            draft.put_hold(replace(hold, better_s=LATER, unfit_s=LATER, offered=None))
        return
    unfit_s = min(hold.unfit_s, draft.now) if targets.cause is Cause.UNFIT else LATER
    if (hold.better_s, hold.unfit_s) != (since_s, unfit_s):
        hold = replace(hold, better_s=since_s, unfit_s=unfit_s)
        draft.put_hold(hold)
    if draft.now - since_s >= targets.waits_s:
        offer_next(draft, hold, targets.members, quiet=why not in LOUD)
    else:
        _look_next(draft, hold.key, since_s + targets.waits_s)
    if unfit_s != LATER:
        _bear_unfit(draft, draft.holds[hold.key], why)


def _look_next(draft: Draft, key: Key, at_s: float) -> None:
    """Look at this key of ours again then, or earlier if that was wanted before; until then only if things change."""
    hold = draft.holds[key]
    due_s = min(at_s, hold.due_s) if hold.due_s > draft.now else at_s
    if due_s != hold.due_s:
        draft.put_hold(replace(hold, due_s=due_s))
    draft.hurry(due_s)


def _bear_unfit(draft: Draft, hold: Hold, why: Why) -> None:
    """An owner that nobody replaces answers on, unless it leads clients astray, or an administrator took it away."""
    limit_s = UNFIT_S if why in ASTRAY else FORBIDDEN_S if why in FORBIDDEN else LATER
    if hold.owner == draft.me and limit_s != LATER:
        if draft.now - hold.unfit_s >= limit_s:
            release(draft, hold)
        else:
            _look_next(draft, hold.key, hold.unfit_s + limit_s)


def _targets(draft: Draft, hold: Hold, vip: Vip, up: dict[MemberId, Standing]) -> Targets:
    """The first cause that holds. Nobody is offered what it would be worse for."""
    why = draft.fit(hold.key)
    order = [member for member in rank(vip, up) if member != draft.me]
    heirs = [member for member in hold.heirs if member in order]
    if why is not Why.ELIGIBLE:
        return Targets(Cause.UNFIT, tuple(dict.fromkeys([*heirs, *order])), 0.0)
    others = {member_id(candidate.node): candidate for candidate in vip.others}
    mine = vip.mine
    near = tuple(member for member in order if others[member].tier < mine.tier)
    if near and vip.local:
        return Targets(Cause.DRAINING_ENDPOINTS, near, 0.0)
    if near and vip.prefer_close and mine.tier is Tier.NONE:
        return Targets(Cause.CLOSER, near, BETTER_S)
    dear = tuple(member for member in order if _is_dearer(others[member], vip, up[member]))
    if dear:
        return Targets(Cause.PREFERRED, dear, 0.0)
    if draft.settings.gives_when_stale and draft.is_stale() and others_are_fresh(draft, draft.wires[hold.key.wire]):
        fresh = tuple(member for member in order if not up[member].stale)
        return Targets(Cause.STALE, fresh, 0.0)
    return Targets(Cause.NONE, (), 0.0)


def _is_dearer(other: Candidate, vip: Vip, standing: Standing) -> bool:
    """Preferred by weight, no worse in its endpoints, and up for a minute."""
    mine = vip.mine
    no_worse = other.tier <= mine.tier or not (vip.local or vip.prefer_close)
    return other.preference > mine.preference and no_worse and not standing.returner and not standing.stale


def offer_next(draft: Draft, hold: Hold, members: Iterable[MemberId], *, quiet: bool) -> None:
    """Offer the key to the next who wasn't asked; after all were, begin again in a while."""
    offered = hold.offered
    wait = ANSWER_INTERVALS * draft.timing.interval_s
    tried = offered.tried if offered is not None else ()
    if offered is not None and draft.now - offered.at_s < wait:
        _look_next(draft, hold.key, offered.at_s + wait)
        return
    left = [member for member in members if member not in tried]
    if left:
        to = left[0]
        draft.put_hold(replace(hold, offered=Offered(to, draft.now, (*tried, to), quiet)))
        draft.offers.setdefault((hold.key.wire, to, quiet), []).append((hold.key, hold.known.epoch))
        _look_next(draft, hold.key, draft.now + wait)
    elif offered is None or offered.to != NOBODY:
        if hold.unfit_s != LATER and draft.now - hold.unfit_s < UNFIT_S:
            # Others' tables may be a moment behind ours: ask again until we must stop.
            draft.put_hold(replace(hold, offered=None))
            _look_next(draft, hold.key, draft.now + draft.timing.look_s)
            return
        if hold.better_s == LATER or draft.now - hold.better_s < RETRY_S:  # once for each cause, however long it lasts
            draft.report(Note.NOBODY_TAKES, hold.key)
        draft.put_hold(replace(hold, offered=Offered(NOBODY, draft.now, tried, quiet)))
        _look_next(draft, hold.key, draft.now + RETRY_S)
    elif draft.now - offered.at_s >= RETRY_S:
        draft.put_hold(replace(hold, offered=None))
        _look_next(draft, hold.key, draft.now + wait)
    else:
        _look_next(draft, hold.key, offered.at_s + RETRY_S)


def flush_offers(draft: Draft) -> None:
    """One message for each receiver, on the wire and on the node network."""
    for (wire, to, quiet), entries in draft.offers.items():
        body = Offer(tuple(entries), quiet, draft.settings.grace_s if quiet else 0.0)
        draft.send(wire, body, to)
        draft.send(NODE_NETWORK, body, to)
    draft.offers.clear()


def hear_offer(draft: Draft, member: Member, offer: Offer) -> None:
    """Claim what is offered, if we are fit; the old owner sees the claim and lets go."""
    for key, epoch in offer.entries:
        hold = draft.hold(key)
        wire = draft.wires.get(key.wire)
        known = hold.known
        stands = known.epoch < epoch or (known.epoch == epoch and known.owner == member.id)
        if not stands or draft.fit(key) is not Why.ELIGIBLE or not speaks(draft, wire):
            continue
        known = known._replace(epoch=max(epoch, known.epoch))
        draft.report(Note.RECEIVED, key, member.id)
        mine = Mine.QUIET if offer.quiet else Mine.HOLD
        until_s = draft.now + offer.grace_s if offer.quiet else LATER
        own(draft, replace(hold, known=known), mine, until_s, member.id)


def mature(draft: Draft, hold: Hold) -> None:
    """The end of a quiet hand-over: the new owner announces, the old one falls silent."""
    if hold.mine is Mine.LINGER:
        if draft.now >= hold.until_s:
            draft.put_hold(replace(hold, mine=Mine.NONE, until_s=LATER, since_s=draft.now))
        else:
            draft.hurry(hold.until_s)
    elif hold.mine is Mine.QUIET:
        giver = draft.members.get(hold.giver)
        wire = draft.wires.get(hold.key.wire)
        gone = giver is None or wire is None or not is_up(draft, giver, channel_of(wire))
        if draft.now >= hold.until_s or gone:
            draft.put_hold(replace(hold, mine=Mine.HOLD, until_s=LATER, giver=NOBODY, announce_s=draft.now, rounds=0))
            draft.claimed[hold.key] = None
        else:
            draft.hurry(hold.until_s)


def balance(draft: Draft) -> None:
    """An owner of more than its share lets one go in ten seconds, once members have been stable for a minute (F15)."""
    state = draft.state
    calm = draft.now - state.joined_s >= STABLE_S and draft.now - state.spread_s >= SPREAD_S
    if not draft.settings.spreads or not calm:
        return
    for wire in draft.wires.values():
        if draft.now - wire.loss_s < STABLE_S or not speaks(draft, wire):
            continue
        up = standings(draft, wire.name)
        loads = {member: standing.load for member, standing in up.items()}
        mine = loads.get(draft.me, 0)
        share = -(-sum(loads.values()) // max(1, len(loads)))
        over = mine > share + share // SLACK and mine - min(loads.values()) > 1
        if over and _let_one_go(draft, wire.name, up):
            return  # loads are those of all wires: one less on another would be two less


def _let_one_go(draft: Draft, wire_name: Channel, up: dict[MemberId, Standing]) -> bool:
    """To the least loaded that is no worse for it; False: there is none."""
    mine = up[draft.me].load
    for key in sorted(key for key in draft.mine if key.wire == wire_name):
        hold, vip = draft.holds[key], draft.vip(key)
        if vip is None or hold.mine is not Mine.HOLD or hold.offered is not None:
            continue
        equal = [
            member
            for candidate in vip.others
            if (member := member_id(candidate.node)) in up and _is_equal(candidate, vip) and up[member].load + 1 < mine
        ]
        if equal:
            best = min(equal, key=lambda member: (up[member].load, member))
            draft.set(spread_s=draft.now)
            offer_next(draft, hold, [best], quiet=True)
            return True
    return False


def _is_equal(other: Candidate, vip: Vip) -> bool:
    mine = vip.mine
    close = not (vip.local or vip.prefer_close) or other.tier <= mine.tier
    return other.why is Why.ELIGIBLE and close and other.preference >= mine.preference


def move(draft: Draft, key: Key, to: MemberId) -> None:
    """Somebody asked for it."""
    hold = draft.holds.get(key)
    if hold is not None and hold.mine in OWNING:
        offer_next(draft, replace(hold, offered=None), [to], quiet=True)
