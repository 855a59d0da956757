"""What is forgotten in the end, so that neither rosters nor keys grow for ever.

A roster shrinks by a goodbye, by a Node that is deleted, and here: by a day of silence that a majority of it witnessed
(F5). Without a majority nobody is forgotten, since it is we who may be cut off.

A key that nobody has and no table names is kept for its epoch alone: whoever remembers a higher one would contradict
the next owner. All members lose sight of it within moments, so they forget it together, an hour later; while one of
them is silent nobody does, as it may come back with what it remembers.
"""

from msgspec.structs import replace

from proxy.l2.actions import Note
from proxy.l2.claims import orphan
from proxy.l2.draft import Draft
from proxy.l2.hearing import channel_of, is_heard
from proxy.l2.state import Member, Wire
from proxy.l2.types import LATER, NOBODY, Key, MemberId, Mine

ABSENT_S = 24 * 3600.0
UNNAMED_S = 3600.0


def forget_absent(draft: Draft) -> None:
    """Members that are silent since a day leave the roster; those of no roster are forgotten whole."""
    for wire in tuple(draft.wires.values()):
        gone = _absent(draft, wire)
        if gone:
            draft.put_wire(replace(wire, roster=wire.roster - gone))
            for member in sorted(gone):
                draft.report(Note.MEMBER_FORGOTTEN, member=member, detail=wire.name)
    counted = {member for wire in draft.wires.values() for member in wire.roster}
    for one in tuple(draft.members.values()):
        if one.id not in counted and draft.now - _last_word_s(draft, one) >= ABSENT_S:
            _forget(draft, one.id)


def _absent(draft: Draft, wire: Wire) -> frozenset[MemberId]:
    """Silent for all of a day in which a majority was there."""
    if wire.majority_s == LATER or draft.now - wire.majority_s < ABSENT_S:
        return frozenset()
    channel = channel_of(wire)
    members = (draft.members.get(member) or Member(member) for member in wire.roster)
    return frozenset(one.id for one in members if draft.now - one.path(channel).heard_s >= ABSENT_S)


def _last_word_s(draft: Draft, member: Member) -> float:
    return max(member.word_s, draft.base.up_s, *(path.heard_s for path in member.paths.values()), member.asked_s)


def _forget(draft: Draft, member: MemberId) -> None:
    for hold in list(draft.holds.values()):
        if hold.owner == member:
            orphan(draft, hold, at_once=False)
    draft.drop_member(member)


def forget_keys(draft: Draft) -> None:
    """Keys that no table of ours names and nobody has, an hour after the last owner."""
    for key in draft.holds.keys() - draft.state.table.vips.keys():
        hold = draft.holds[key]
        unnamed = hold.owner == NOBODY and hold.mine is Mine.NONE
        if unnamed and draft.now - hold.orphan_s >= UNNAMED_S and not _may_be_remembered(draft, key):
            draft.drop_hold(key)


def _may_be_remembered(draft: Draft, key: Key) -> bool:
    """By a member that is silent now."""
    wire = draft.wires.get(key.wire)
    if wire is None:
        return False
    channel = channel_of(wire)
    members = (draft.members.get(member) or Member(member) for member in wire.roster)
    return not all(is_heard(draft, member.path(channel)) for member in members)
