"""What an announcer tells people: who owns what, who comes next, and why the others don't. No I/O."""

import math

import msgspec

from endpointslice.types import IP, NodeName
from proxy.l2.candidates import Candidate, Vip, Why
from proxy.l2.clients import share_of
from proxy.l2.draft import Draft
from proxy.l2.election import Standing, rank
from proxy.l2.evidence import NoAnswer, find_foreign
from proxy.l2.hearing import channel_of, has_majority, is_listening, is_up
from proxy.l2.placing import standings
from proxy.l2.reasons import find_why
from proxy.l2.state import Hold, State, Wire
from proxy.l2.types import NOBODY, Channel, Key, MemberId, member_id

NO_NODE = NodeName("")


class CandidateStatus(msgspec.Struct, frozen=True):
    """One node and one address."""

    node: NodeName
    why: str  # eligible, or a stable reason code
    tier: str
    preference: int
    heard_s: float | None  # since its last message on the wire; None: never, or it is this node


class VipStatus(msgspec.Struct, frozen=True):
    """One address on one wire."""

    vip: IP
    wire: Channel
    owner: NodeName  # "": nobody, as far as is known
    mine: str  # what this node does for it
    epoch: int
    foreign: str  # the MAC of a host that is no member and has answered for it lately; "": none has
    heirs: tuple[NodeName, ...]  # named by the owner; else in the order of the election
    candidates: tuple[CandidateStatus, ...]
    sharers: tuple[NodeName, ...] = ()  # of an address that several nodes share
    clients: int = 0  # that are known of it
    routers: tuple[str, ...] = ()  # MACs that stand for many clients
    not_shared: str = ""  # why it isn't shared though that is asked for


class WireStatus(msgspec.Struct, frozen=True):
    """This node's end of a wire."""

    wire: Channel
    carrier: bool
    members: tuple[NodeName, ...]  # heard now
    roster: int  # how many count
    majority: bool
    says: str  # "answered", or why no request is answered now


class Status(msgspec.Struct, frozen=True):
    """All of it."""

    node: NodeName
    draining: bool
    drained: bool
    proxy: bool  # whether this node's proxy answers
    table_age_s: float | None
    drains: tuple[str, ...]  # why it drains
    vips: tuple[VipStatus, ...]
    wires: tuple[WireStatus, ...]
    no_interface: tuple[IP, ...] = ()  # served by the kernel, and in no subnet of this node's
    problems: tuple[str, ...] = ()  # objects that are wrong, as the proxy tells


def describe(state: State, now: float, without: NodeName = NO_NODE) -> Status:
    """As of now; `without`: as it would go on if that node were lost."""
    draft = Draft(state, now)
    ups = {name: standings(draft, name) for name in state.wires}
    age_s = now - state.fresh_s
    return Status(
        node=state.settings.node,
        draining=state.draining,
        drained=state.drained,
        proxy=not state.proxy_gone,
        table_age_s=round(age_s, 2) if math.isfinite(age_s) else None,
        drains=tuple(sorted(cause.value for cause in state.drains)),
        vips=tuple(_vip(draft, key, ups.get(key.wire, {}), without) for key in sorted(state.holds)),
        wires=tuple(_wire(draft, wire) for wire in state.wires.values()),
    )


def count_members(state: State, now: float) -> dict[Channel, int]:
    """How many others are heard on each wire."""
    draft = Draft(state, now)
    return {
        name: sum(is_up(draft, member, channel_of(wire)) for member in draft.members.values())
        for name, wire in draft.wires.items()
    }


def _vip(draft: Draft, key: Key, up: dict[MemberId, Standing], without: NodeName) -> VipStatus:
    hold, vip = draft.holds[key], draft.vip(key)
    names = {member.id: member.node for member in draft.members.values()} | {draft.me: draft.settings.node}
    order, share = _order(hold, vip, up), share_of(draft, key)
    owner = hold.owner
    if without:
        lost = member_id(without)
        order = [member for member in order if member != lost]
        if owner == lost:
            owner = order.pop(0) if order else NOBODY
    unknown = Candidate(draft.settings.node, Why.NOT_IN_TABLE)
    candidates = (vip.mine, *vip.others) if vip is not None else (unknown,)
    return VipStatus(
        vip=key.vip,
        wire=key.wire,
        owner=_name(names, owner),
        mine=hold.mine.value,
        epoch=hold.known.epoch,
        foreign=find_foreign(draft.members.values(), hold, draft.now),
        heirs=tuple(_name(names, member) for member in order if member != owner)[:2],
        candidates=tuple(_candidate(draft, key, candidate) for candidate in candidates),
        sharers=tuple(sorted(_name(names, member) for member in share.members)),
        clients=len(share.clients),
        routers=tuple(sorted(share.routers)),
        not_shared=vip.not_shared if vip is not None else "",
    )


def _order(hold: Hold, vip: Vip | None, up: dict[MemberId, Standing]) -> list[MemberId]:
    """The heirs that the owner named, then the rest as the election has them; those that are up."""
    heirs = [member for member in hold.heirs if member in up]
    ranked = rank(vip, up) if vip is not None else []
    return list(dict.fromkeys([*heirs, *(member for member in ranked if member != hold.owner)]))


def _candidate(draft: Draft, key: Key, candidate: Candidate) -> CandidateStatus:
    member = draft.members.get(member_id(candidate.node))
    wire, heard_s = draft.wires.get(key.wire), None
    if member is not None and wire is not None:
        age_s = draft.now - member.path(channel_of(wire)).heard_s
        heard_s = round(age_s, 3) if math.isfinite(age_s) else None
    why = find_why(draft, key, candidate)
    return CandidateStatus(candidate.node, why.value, candidate.tier.name.lower(), candidate.preference, heard_s)


def _wire(draft: Draft, wire: Wire) -> WireStatus:
    channel = channel_of(wire)
    up = [member.node for member in draft.members.values() if is_up(draft, member, channel)]
    says = NoAnswer.ANSWERED
    if not wire.carrier:
        says = NoAnswer.NO_CARRIER
    elif wire.suspended:
        says = NoAnswer.SUSPENDED
    elif is_listening(draft, wire):
        says = NoAnswer.LISTENING
    majority = has_majority(draft, wire)
    return WireStatus(wire.name, wire.carrier, tuple(sorted(up)), 1 + len(wire.roster), majority, says.value)


def _name(names: dict[MemberId, NodeName], member: MemberId) -> NodeName:
    return NodeName("") if member == NOBODY else names.get(member) or NodeName(f"member {member:016x}")
