"""The members as the election sees them. Read-only."""

from proxy.l2.draft import STALE_S, Draft
from proxy.l2.election import Standing, spread
from proxy.l2.hearing import channel_of, is_up
from proxy.l2.messages import Flags
from proxy.l2.state import NOTHING, Member
from proxy.l2.types import NOBODY, Channel, Key, MemberId

RETURNER_S = 60.0


def standings(draft: Draft, wire_name: Channel) -> dict[MemberId, Standing]:
    """The members that are up on the wire and don't drain, with their loads; this one among them if it may own."""
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


def places(draft: Draft, wire_name: Channel) -> dict[Key, MemberId]:
    """Who should take each key of the wire that nobody owns, or owned; dealt out together, so that 3 on 3 are 1/1/1."""
    found = draft.places.get(wire_name)
    if found is None:
        holds = draft.holds
        vips = [
            vip
            for key, vip in draft.state.table.vips.items()
            if key.wire == wire_name and (key not in holds or holds[key].owner == NOBODY)
        ]
        found = draft.places[wire_name] = spread(vips, standings(draft, wire_name))
    return found
