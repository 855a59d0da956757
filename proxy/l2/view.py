"""`closeby who-announces`: who owns an address, who would be next, and why each other node doesn't. Values only."""

import msgspec

from endpointslice.types import NodeName
from proxy.l2.candidates import Candidate, Vip, Why
from proxy.l2.draft import Draft
from proxy.l2.election import rank
from proxy.l2.evidence import is_in_use
from proxy.l2.hearing import channel_of, is_listening, is_up
from proxy.l2.messages import Flags
from proxy.l2.placing import standings
from proxy.l2.state import Hold, State, Wire
from proxy.l2.types import NOBODY, NODE_NETWORK, Channel, Key, MemberId, Mine, Tier, Version, member_id


class Row(msgspec.Struct, frozen=True):
    """One candidate, as this node sees it."""

    node: NodeName
    why: Why
    tier: Tier
    preference: int
    ready: int
    load: int  # addresses that it owns
    beat_age_s: float | None  # of its last message on the address's wire; None: never heard, or this node
    returner: bool
    stale: bool
    owner: bool
    heir: int  # 1 or 2; 0: named by nobody


class View(msgspec.Struct, frozen=True):
    """What is known of one address on one wire."""

    key: Key
    owner: NodeName | None  # None: nobody, or a member whose name was never heard
    mine: Mine
    version: Version
    heirs: tuple[NodeName, ...]
    rows: tuple[Row, ...]
    next: tuple[NodeName, ...]  # who takes it, in this order, if the owner is lost


def view(state: State, now: float, *, without: NodeName | None = None) -> tuple[View, ...]:
    """Every address that the proxy's table or a claim tells of, sorted; `without`: as if that node were lost."""
    draft = Draft(state, max(now, state.last_step_s))
    gone = member_id(without) if without is not None else NOBODY
    keys = sorted({*state.table.vips, *(key for key, hold in state.holds.items() if hold.owner != NOBODY)})
    return tuple(_view(draft, key, gone) for key in keys)


def next_owner(shown: View, without: NodeName) -> NodeName | None:
    """Who has the address once `without` is lost: its owner still, or the first that comes next."""
    if shown.owner is not None and shown.owner != without:
        return shown.owner
    return next((node for node in shown.next if node != without), None)


def _view(draft: Draft, key: Key, gone: MemberId) -> View:
    hold, vip, wire = draft.hold(key), draft.vip(key), draft.wires.get(key.wire)
    names = _names(draft, vip)
    heirs = tuple(names[heir] for heir in hold.heirs if heir in names)
    order = list(hold.heirs)
    if vip is not None:
        order += rank(vip, standings(draft, key.wire))
    following = [
        names[member]
        for member in dict.fromkeys(order)
        if member in names and member not in {gone, hold.owner} and _may_take(draft, wire, member)
    ]
    rows = tuple(_row(draft, wire, hold, candidate) for candidate in _candidates(draft, vip))
    return View(key, names.get(hold.owner), hold.mine, hold.known, heirs, rows, tuple(following))


def _names(draft: Draft, vip: Vip | None) -> dict[MemberId, NodeName]:
    known = {member.id: member.node for member in draft.members.values() if member.node}
    known[draft.me] = draft.settings.node
    for candidate in (vip.mine, *vip.others) if vip is not None else ():
        known.setdefault(member_id(candidate.node), candidate.node)
    return known


def _candidates(draft: Draft, vip: Vip | None) -> list[Candidate]:
    """By name; without a row of the table, this node alone, which then tells why it isn't one."""
    found = [vip.mine, *vip.others] if vip is not None else [Candidate(draft.settings.node, Why.NOT_IN_TABLE)]
    return sorted(found, key=lambda candidate: candidate.node)


def _may_take(draft: Draft, wire: Wire | None, member: MemberId) -> bool:
    other = draft.members.get(member)
    return member == draft.me or (other is not None and wire is not None and is_up(draft, other, channel_of(wire)))


def _row(draft: Draft, wire: Wire | None, hold: Hold, candidate: Candidate) -> Row:
    member = member_id(candidate.node)
    standing = standings(draft, hold.key.wire).get(member)
    other = draft.members.get(member)
    channel: Channel = channel_of(wire) if wire is not None else NODE_NETWORK
    path = other.paths.get(channel) if other is not None else None
    return Row(
        node=candidate.node,
        why=_why(draft, wire, hold, candidate),
        tier=candidate.tier,
        preference=candidate.preference,
        ready=candidate.ready,
        load=standing.load if standing is not None else 0,
        beat_age_s=draft.now - path.heard_s if path is not None else None,
        returner=standing is not None and standing.returner,
        stale=standing is not None and standing.stale,
        owner=member == hold.owner,
        heir=hold.heirs.index(member) + 1 if member in hold.heirs else 0,
    )


def _why(draft: Draft, wire: Wire | None, hold: Hold, candidate: Candidate) -> Why:
    """The first reason that stands in the way."""
    if candidate.why is not Why.ELIGIBLE:
        return candidate.why
    member = member_id(candidate.node)
    if member == draft.me:
        return _my_why(draft, wire, hold)
    other = draft.members.get(member)
    if other is None or wire is None:
        return Why.SILENT
    if other.left:
        return Why.LEFT
    if not is_up(draft, other, channel_of(wire)):
        return Why.SILENT
    return Why.DRAINING if Flags.DRAINING in other.flags else Why.ELIGIBLE


def _my_why(draft: Draft, wire: Wire | None, hold: Hold) -> Why:
    why = draft.fit(hold.key)
    if why is not Why.ELIGIBLE or wire is None:
        return why
    if is_listening(draft, wire):
        return Why.LISTENING
    if wire.suspended:
        return Why.SUSPENDED
    if is_in_use(hold, draft.now):
        return Why.ADDRESS_IN_USE
    return Why.BARRED if hold.barred_s > draft.now else Why.ELIGIBLE
