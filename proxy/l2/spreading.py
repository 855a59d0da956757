"""One address shared by several nodes (experimental): each requester is answered by one of them, always the same.

Requests are broadcast, so every member sees them, knows the requesters, and answers its own. When members come or go, a
member tells just those requesters that become its own, one by one by unicast: a broadcast would bring everybody to one
node. Who is without a majority shares nothing: the owner alone answers, as for other addresses.
"""

from collections.abc import Mapping
from typing import NamedTuple

from endpointslice.types import IP
from proxy.l2.actions import Note, Owned, Tell, Withdraw
from proxy.l2.candidates import Vip, Why
from proxy.l2.draft import Draft
from proxy.l2.events import ArpSeen
from proxy.l2.hearing import has_majority, speaks
from proxy.l2.placing import standings
from proxy.l2.shares import NO_SHARE, Client, Share, choose_sharer
from proxy.l2.state import State
from proxy.l2.types import Key, MemberId, Mine, member_id

JOIN_S = 3.0  # a member that came (back) less ago listens, and answers nobody
KEPT_S = 1200.0  # a requester that wasn't seen for so long is forgotten: caches forget the address sooner
SEEN_S = 10.0  # how exactly it is known when one asked last
MOST_CLIENTS = 4096  # of one address
REPEAT_S = 1.1  # a second telling, should the first be lost
TELLS_A_TICK = 25  # with four ticks an interval no more than 500 a second
ROUTER_ADDRESSES = 3  # of one MAC: it stands for others


class _Due(NamedTuple):
    at_s: float
    key: Key
    client: IP


def share_of(draft: Draft, key: Key) -> Share:
    """What is known of a shared key."""
    return draft.state.shares.get(key, NO_SHARE)


def _put_share(draft: Draft, key: Key, share: Share) -> None:
    draft.set(shares={**draft.state.shares, key: share})


def _drop_share(draft: Draft, key: Key) -> None:
    draft.set(shares={other: share for other, share in draft.state.shares.items() if other != key})


def sharers(draft: Draft, vip: Vip) -> dict[MemberId, int]:
    """Who shares it, by this member's view, with weights: under policy Local the ready endpoints, else the same."""
    up = standings(draft, vip.key.wire)
    found: dict[MemberId, int] = {}
    for candidate in vip.others:
        member = member_id(candidate.node)
        known = draft.members.get(member)
        if candidate.why is not Why.ELIGIBLE or member not in up or up[member].stale or known is None:
            continue
        if draft.now - known.since_s >= JOIN_S:
            found[member] = candidate.ready if vip.local else 1
    if draft.me in up and draft.fit(vip.key) is Why.ELIGIBLE and draft.now - draft.base.up_s >= JOIN_S:
        found[draft.me] = vip.mine.ready if vip.local else 1
    return found


def watch_shares(draft: Draft) -> None:
    """Whether members came or went for an address that is shared; and tell who must be told by now."""
    for key in sorted(draft.state.shared):
        vip = draft.vip(key)
        wire = draft.wires.get(key.wire)
        if vip is None or wire is None:
            continue
        before = share_of(draft, key)
        able = speaks(draft, wire) and has_majority(draft, wire)
        members = sharers(draft, vip) if able else {}
        if members != before.members:
            _change(draft, key, before, members)
    _tell_due(draft)


def _change(draft: Draft, key: Key, before: Share, members: Mapping[MemberId, int]) -> None:
    """New sharers: tell the requesters that become ours. Who shared nothing until now knows of no change."""
    was, shares = draft.me in before.members, draft.me in members
    _put_share(draft, key, before._replace(members=members))
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
    due = [_Due(draft.now + later, key, client) for later in (0.0, REPEAT_S) for client in moved]
    draft.set(telling=(*draft.state.telling, *due))
    draft.report(Note.SHARED, key, detail=f"{len(members)} nodes, {len(moved)} of {len(before.clients)} clients told")


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
    clients = dict(share.clients)
    clients.pop(asker, None)
    if len(clients) >= MOST_CLIENTS:
        clients = {ip: client for ip, client in clients.items() if draft.now - client.seen_s < KEPT_S}
        for oldest in list(clients)[: max(0, len(clients) - MOST_CLIENTS + MOST_CLIENTS // 8)]:
            del clients[oldest]
    clients[asker] = Client(event.mac, draft.now)
    routers = share.routers
    if event.mac not in routers and _is_router(draft, event, clients):
        routers |= {event.mac}
        draft.report(Note.SHARE_ROUTED, key, detail=event.mac)
    _put_share(draft, key, share._replace(clients=clients, routers=routers))


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
