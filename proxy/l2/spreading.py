"""One address shared by several nodes (experimental): each requester is answered by one of them, always the same.

Requests are broadcast, so every member sees them, knows the requesters, and answers its own; who comes later is told of
them. When members come or go, a member tells just those requesters that become its own, one by one by unicast: a
broadcast would bring everybody to one node. Who is without a majority shares nothing: the owner alone answers, as for
other addresses.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from endpointslice.types import IP
from proxy.l2.actions import Note, Owned, Tell, Withdraw
from proxy.l2.candidates import Vip, Why
from proxy.l2.clients import REPEAT_S, learn, pass_on, put_share, remember, share_of
from proxy.l2.draft import Draft
from proxy.l2.events import ArpSeen
from proxy.l2.hearing import channel_of, has_majority, speaks
from proxy.l2.messages import Clients
from proxy.l2.placing import others_are_fresh, standings
from proxy.l2.shares import Client, Share, choose_sharer
from proxy.l2.state import State, Wire
from proxy.l2.types import LATER, Key, MemberId, Mine, member_id

JOIN_S = 3.0  # a member that came less ago, or was without a majority, only listens
OUTDATED_S = 10.0  # who has an old table for so long while others have fresh ones shares no more
SEEN_S = 10.0  # how exactly it is known when one asked last
TELLS_A_TICK = 25  # with four ticks an interval no more than 500 a second
ROUTER_ADDRESSES = 3  # of one MAC: it stands for others


class _Due(NamedTuple):
    at_s: float
    key: Key
    client: IP


def _drop_share(draft: Draft, key: Key) -> None:
    draft.set(shares={other: share for other, share in draft.state.shares.items() if other != key})


def sharers(draft: Draft, vip: Vip, wire: Wire) -> dict[MemberId, int]:
    """Who shares it, by this member's view, with weights: under policy Local the ready endpoints, else the same.

    Others say so in their heartbeats, so that whoever comes leaves everybody to them until it says so itself.
    """
    up, now, channel = standings(draft, vip.key.wire), draft.now, channel_of(wire)
    found: dict[MemberId, int] = {}
    for candidate in vip.others:
        member = draft.members.get(member_id(candidate.node))
        if candidate.why is Why.ELIGIBLE and member is not None and member.id in up and member.path(channel).shares:
            found[member.id] = candidate.ready if vip.local else 1
    joins = draft.me in share_of(draft, vip.key).members or now - max(draft.base.up_s, wire.majority_s) >= JOIN_S
    able = draft.me in up and draft.fit(vip.key) is Why.ELIGIBLE and now - draft.state.outdated_s < OUTDATED_S
    if joins and able:
        found[draft.me] = vip.mine.ready if vip.local else 1
    return found


def _note_outdated(draft: Draft) -> None:
    """Since when our table is old while a majority's are fresh. An outage of the API, and its end, moves nothing."""
    outdated = any(others_are_fresh(draft, wire) for wire in draft.wires.values())
    if outdated != (draft.state.outdated_s != LATER):
        draft.set(outdated_s=draft.now if outdated else LATER)


def watch_shares(draft: Draft) -> None:
    """Whether members came or went for an address that is shared; and tell who must be told by now."""
    _note_outdated(draft)
    sharing = set()
    for key in sorted(draft.state.shared):
        vip = draft.vip(key)
        wire = draft.wires.get(key.wire)
        if vip is None or wire is None:
            continue
        before = share_of(draft, key)
        able = speaks(draft, wire) and has_majority(draft, wire)
        members = sharers(draft, vip, wire) if able else {}
        if members != before.members:
            _change(draft, key, before, members)
        if draft.me in members:
            sharing.add(key.wire)
    if sharing != draft.state.sharing:
        draft.set(sharing=frozenset(sharing), beat_s=draft.now)
        draft.hurry()
    _tell_due(draft)


def _change(draft: Draft, key: Key, before: Share, members: Mapping[MemberId, int]) -> None:
    """New sharers: tell the requesters that become ours. Who shared nothing until now knows of no change."""
    was, shares = draft.me in before.members, draft.me in members
    put_share(draft, key, before._replace(members=members))
    stayed = {member: weight for member, weight in before.members.items() if member in members}
    if draft.me in stayed and members.keys() - stayed.keys():
        pass_on(draft, key, stayed)
    if was != shares and draft.hold(key).mine is Mine.NONE:
        draft.actions.append(Owned(key) if shares else Withdraw(key))
    if not shares:
        return
    moved = [
        client
        for client in before.clients
        if choose_sharer(key, client, members) == draft.me
        and not (was and choose_sharer(key, client, before.members) == draft.me)
    ]
    _tell_soon(draft, key, moved)
    draft.report(Note.SHARED, key, detail=f"{len(members)} nodes, {len(moved)} of {len(before.clients)} clients told")


def _tell_soon(draft: Draft, key: Key, clients: Iterable[IP]) -> None:
    due = [_Due(draft.now + later, key, client) for later in (0.0, REPEAT_S) for client in clients]
    draft.set(telling=(*draft.state.telling, *due))


def hear_clients(draft: Draft, body: Clients) -> None:
    """A member knows clients that we may not; those that are ours haven't heard of it, as the member answered them."""
    if body.key not in draft.state.shared or body.key.wire not in draft.wires:
        return
    new = learn(draft, body)
    members = share_of(draft, body.key).members
    if draft.me in members:
        _tell_soon(draft, body.key, [ip for ip in new if choose_sharer(body.key, ip, members) == draft.me])


def _tell_due(draft: Draft) -> None:
    telling = draft.state.telling
    if not telling:
        return
    due = sorted(entry for entry in telling if entry[0] <= draft.now)[:TELLS_A_TICK]
    for _at_s, key, client in due:
        share = share_of(draft, key)
        known = share.clients.get(client)
        if known is not None and choose_sharer(key, client, share.members) == draft.me:
            draft.actions.append(Tell(key, client, known.mac))
    left = set(due)
    draft.set(telling=tuple(entry for entry in telling if entry not in left))


def tell_clients(draft: Draft, key: Key) -> None:
    """All requesters that are ours: our MAC is another one."""
    share = share_of(draft, key)
    if share.members:
        mine = (client for client in share.clients if choose_sharer(key, client, share.members) == draft.me)
        draft.set(telling=(*draft.state.telling, *(_Due(draft.now, key, client) for client in mine)))


def find_share(state: State, event: ArpSeen) -> Share | None:
    """The share by which a client's request is answered; None: by the address's owner.

    That is for what members ask each other, for a probe, which names no sender, and while nobody shares.
    """
    share = state.shares.get(Key(event.vip, event.wire)) if event.asker else None
    if share is None or not share.members:
        return None
    if any(member.path(event.wire).mac == event.mac for member in state.members.values()):
        return None
    return share


def note_client(draft: Draft, event: ArpSeen) -> None:
    """Who asks for a shared address, so that it can be told; a router is one, however many are behind it."""
    key, asker = Key(event.vip, event.wire), event.asker
    if asker is None or key not in draft.state.shared or find_share(draft.state, event) is None:
        return
    share = share_of(draft, key)
    known = share.clients.get(asker)
    if known is not None and known.mac == event.mac and draft.now - known.seen_s < SEEN_S:
        return
    clients = remember(share.clients, {asker: Client(event.mac, draft.now)}, draft.now)
    routers = share.routers
    if event.mac not in routers and _is_router(draft, event, clients):
        routers |= {event.mac}
        draft.report(Note.SHARE_ROUTED, key, detail=event.mac)
    put_share(draft, key, share._replace(clients=clients, routers=routers))


def _is_router(draft: Draft, event: ArpSeen, clients: Mapping[IP, Client]) -> bool:
    if draft.wires[event.wire].gateway == event.asker:
        return True
    return sum(client.mac == event.mac for client in clients.values()) >= ROUTER_ADDRESSES


def share_table(draft: Draft) -> None:
    """The table changed: what is shared now. What no longer is, its owner announces to everybody."""
    before = draft.state.shared
    vips = draft.state.table.vips
    shared = frozenset(key for key, vip in vips.items() if vip.shared)
    refused = {key: vip.not_shared for key, vip in vips.items() if vip.not_shared}
    for key in sorted(refused.keys() - draft.state.refused.keys()):
        draft.report(Note.NOT_SHARED, key, detail=refused[key])
    if (shared, refused) == (before, draft.state.refused):
        return
    draft.set(shared=shared, refused=refused)
    for key in sorted(before - shared):
        was = draft.me in share_of(draft, key).members
        _drop_share(draft, key)
        hold = draft.hold(key)
        if was and hold.mine is Mine.NONE:
            draft.actions.append(Withdraw(key))
