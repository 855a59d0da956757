"""From what should be said of a Service to what is written: nothing that stands there already. Pure.

There is one object for each Service and node. Who announces an address takes it out of what other nodes' objects say:
of a node that died nobody else would. A node takes its own object away when it announces nothing more.
"""

from collections.abc import Collection, Iterable, Iterator

from msgspec.structs import replace

from endpointslice.types import IP, NodeName
from proxy.l2status.types import Delete, Entry, Put, Stored, Write


def plan_writes(wanted: Entry | None, held: Collection[IP], node: NodeName, stored: Iterable[Stored]) -> list[Write]:
    """For one Service: `wanted` of this node, None: nothing; `stored`: all objects of the Service.

    `held`: what the node announces now; of the rest of `wanted` others may know better.
    """
    others: list[Stored] = []
    mine = None
    for one in stored:
        if one.entry.node == node:
            mine = one
        else:
            others.append(one)
    wish = _without_moved(wanted, held, others) if wanted is not None else None
    writes = [write for other in others for write in _plan_other(wish, held, other)]
    if wish is None:
        return [Delete(mine), *writes] if mine is not None else writes
    if mine is None or mine.entry != wish:
        return [Put(wish), *writes]
    return writes


def _without_moved(wanted: Entry, held: Collection[IP], others: Iterable[Stored]) -> Entry | None:
    """Without what the node announces no more and another says that it does; None if nothing is left."""
    told = {address.ip for other in others for address in other.entry.addresses}
    addresses = tuple(address for address in wanted.addresses if address.ip in held or address.ip not in told)
    return replace(wanted, addresses=addresses) if addresses or wanted.conflicts else None


def _plan_other(wish: Entry | None, held: Collection[IP], other: Stored) -> Iterator[Write]:
    """Without the addresses that this node announces; not at all if nothing is left."""
    taken = {address.ip for address in wish.addresses if address.ip in held} if wish is not None else set()
    entry = other.entry
    addresses = tuple(address for address in entry.addresses if address.ip not in taken)
    conflicts = tuple(stranger for stranger in entry.conflicts if stranger.ip not in taken)
    left = replace(entry, addresses=addresses, conflicts=conflicts)
    if left != entry:
        yield Put(left, other.version) if addresses or conflicts else Delete(other)
