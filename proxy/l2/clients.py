"""Who has asked for a shared address: learned from broadcasts, and from members when one has come since.

The number that is remembered is bounded, and the oldest are forgotten: they are asked for again, or ask again.
"""

from collections.abc import Mapping

from endpointslice.types import IP
from proxy.l2.draft import Draft
from proxy.l2.hearing import channel_of
from proxy.l2.messages import Asker, Clients
from proxy.l2.shares import NO_SHARE, Client, Share, choose_sharer
from proxy.l2.types import Key, MemberId

KEPT_S = 1200.0  # a requester that wasn't seen for so long is forgotten: caches forget the address sooner
MOST_CLIENTS = 4096  # of one address
MOST_PASSING = 8192  # that wait to be told to members, of all addresses
PASSED_A_TICK = 40  # one datagram; with four ticks an interval no more than 800 a second
REPEAT_S = 1.1  # a second telling, should the first be lost


def share_of(draft: Draft, key: Key) -> Share:
    """What is known of a shared key."""
    return draft.state.shares.get(key, NO_SHARE)


def put_share(draft: Draft, key: Key, share: Share) -> None:
    """Replace it."""
    draft.set(shares={**draft.state.shares, key: share})


def remember(known: Mapping[IP, Client], heard: Mapping[IP, Client], now: float) -> dict[IP, Client]:
    """Both together, the later word on each client counting, in whatever order they come.

    No more than MOST_CLIENTS: beyond that, those that were seen last are kept, and some room besides.
    """
    clients = dict(known)
    for ip, client in heard.items():
        before = clients.get(ip)
        if before is None or (client.seen_s, client.mac) > (before.seen_s, before.mac):
            clients[ip] = client
    if len(clients) <= MOST_CLIENTS:
        return clients
    latest = sorted(clients.items(), key=lambda item: (-item[1].seen_s, item[0]))
    kept = [item for item in latest[: MOST_CLIENTS - MOST_CLIENTS // 8] if now - item[1].seen_s < KEPT_S]
    return dict(kept)


def pass_on(draft: Draft, key: Key, stayed: Mapping[MemberId, int]) -> None:
    """Let the others know the clients of the key that are ours among these members, which have known them so far.

    So each is passed on by one member. Those that asked last come first, as the number that waits is bounded.
    """
    clients = share_of(draft, key).clients
    latest = sorted(clients, key=lambda ip: (-clients[ip].seen_s, ip))
    ours = [ip for ip in latest if choose_sharer(key, ip, stayed) == draft.me][: MOST_PASSING // 2]
    due = [(draft.now + later, key, ip) for later in (0.0, REPEAT_S) for ip in ours]
    waiting = sorted({*draft.state.passing, *due}, key=lambda entry: entry[:2])
    draft.set(passing=tuple(waiting[:MOST_PASSING]))


def pass_due(draft: Draft) -> None:
    """One message, of a few clients of one key."""
    passing = draft.state.passing
    due = [entry for entry in passing[:PASSED_A_TICK] if entry[0] <= draft.now and entry[1] == passing[0][1]]
    if not due:
        return
    draft.set(passing=passing[len(due) :])
    key = due[0][1]
    known, wire = share_of(draft, key).clients, draft.wires.get(key.wire)
    there = [(ip, known[ip]) for _at_s, _key, ip in due if ip in known]
    if there and wire is not None:
        entries = tuple(Asker(ip, client.mac, draft.now - client.seen_s) for ip, client in there)
        draft.send(channel_of(wire), Clients(key, entries))


def learn(draft: Draft, body: Clients) -> list[IP]:
    """Take in what a member knows; clients that are new here."""
    key, now = body.key, draft.now
    share = share_of(draft, key)
    heard = {
        asker.ip: Client(asker.mac, now - max(asker.age_s, 0.0))
        for asker in body.entries
        if asker.mac and asker.age_s < KEPT_S
    }
    clients = remember(share.clients, heard, now)
    put_share(draft, key, share._replace(clients=clients))
    return [ip for ip in heard if ip not in share.clients and ip in clients]
