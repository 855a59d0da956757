"""The members as the election sees them. Read-only."""

from collections.abc import Collection, Mapping

from proxy.l2.candidates import Vip
from proxy.l2.draft import STALE_S, Draft
from proxy.l2.election import Order, Standing, spread
from proxy.l2.hearing import channel_of, is_up, two_way
from proxy.l2.messages import Flags
from proxy.l2.state import NOTHING, Circumstances, Dealt, Member, Wire
from proxy.l2.types import NOBODY, Channel, Key, MemberId

RETURNER_S = 60.0
FRESH_S = 10.0


def standings(draft: Draft, wire_name: Channel) -> dict[MemberId, Standing]:
    """The members that are up on the wire and don't drain, with their loads; this one among them if it may own.

    Found once a step until a member changes: it is asked for with each of thousands of keys.
    """
    found = draft.ups.get(wire_name)
    if found is None:
        found = draft.ups[wire_name] = _find_standings(draft, wire_name)
    return found


def _find_standings(draft: Draft, wire_name: Channel) -> dict[MemberId, Standing]:
    wire = draft.wires.get(wire_name)
    if wire is None:
        return {}
    channel = channel_of(wire)
    found = {
        member.id: _standing(draft, member)
        for member in draft.members.values()
        if is_up(draft, member, channel) and Flags.DRAINING not in member.flags
    }
    if not draft.state.draining and not draft.state.stopped:
        mine = draft.tallies.get(draft.me, NOTHING)
        found[draft.me] = Standing(mine.size, draft.now - draft.base.up_s < RETURNER_S, draft.is_stale())
    return found


def _standing(draft: Draft, member: Member) -> Standing:
    stale = Flags.STALE in member.flags or member.table_age_s > STALE_S
    return Standing(member.count, draft.now - member.since_s < RETURNER_S, stale)


def others_are_fresh(draft: Draft, wire: Wire) -> bool:
    """A majority's tables are fresh while ours is old. If all are old, the API is gone, and nothing moves (F10)."""
    fresh = sum(member.table_age_s < FRESH_S for member in two_way(draft, wire))
    return fresh * 2 > 1 + len(wire.roster) and draft.now - draft.state.fresh_s > STALE_S


def circumstances(draft: Draft) -> Circumstances:
    """What causes to give keys away rest upon."""
    stale = draft.is_stale()
    return Circumstances(
        up=frozenset(
            (name, member, standing.returner, standing.stale)
            for name in draft.wires
            for member, standing in standings(draft, name).items()
        ),
        carriers=frozenset(name for name, wire in draft.wires.items() if wire.carrier),
        draining=draft.state.draining,
        stale=stale,
        others_fresh=frozenset(name for name, wire in draft.wires.items() if stale and others_are_fresh(draft, wire)),
    )


def place_of(draft: Draft, key: Key) -> MemberId:
    """Who should take a key that nobody owns, or owned; all such are dealt out together, so that 3 on 3 are 1/1/1.

    A deal stands until members or the table change, or it lacks the key: thousands of keys take several steps.
    """
    dealt = draft.dealt.get(key.wire) or draft.state.dealt.get(key.wire)
    up = standings(draft, key.wire)
    if dealt is None or key not in dealt.owners or (key.wire not in draft.dealt and dealt.up != _likes(up)):
        if key.wire in draft.dealt:
            return NOBODY
        dealt = _deal(draft, key.wire)
        draft.set(dealt={**draft.state.dealt, key.wire: dealt})
    draft.dealt[key.wire] = dealt
    return dealt.owners.get(key, NOBODY)


def _deal(draft: Draft, wire_name: Channel) -> Dealt:
    holds = draft.holds
    vips = [
        vip
        for key, vip in draft.state.table.vips.items()
        if key.wire == wire_name and (key not in holds or holds[key].owner == NOBODY)
    ]
    up = standings(draft, wire_name)
    return Dealt(_likes(up), spread(vips, up))


def _likes(up: Mapping[MemberId, Standing]) -> frozenset[tuple[MemberId, bool, bool]]:
    return frozenset((member, standing.returner, standing.stale) for member, standing in up.items())


def places_before(draft: Draft, vip: Vip, heirs: Collection[MemberId]) -> int | None:
    """How many come before us for the address, but for the heirs that its owner named; None: we don't come at all."""
    likes = (vip.key.wire, id(vip.others), id(vip.mine))
    found = draft.orders.get(likes)
    if found is None:
        found = draft.orders[likes] = Order(vip, standings(draft, vip.key.wire), draft.me)
    return found.place(vip.key, [heir for heir in heirs if heir != NOBODY])
