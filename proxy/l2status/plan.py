"""From what should be said of a Service to what is written: nothing that stands there already. Pure.

There is one object for each Service and node. Who announces an address takes it out of what other nodes' objects say:
of a node that died nobody else would. A node takes its own object away when it announces nothing more.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from endpointslice.types import NodeName
from proxy.l2status.types import Delete, Entry, Put, Stored, Write


def plan_writes(wanted: Entry | None, node: NodeName, stored: Iterable[Stored]) -> list[Write]:
    """For one Service: `wanted` of this node, None: nothing; `stored`: all objects of the Service."""
    writes: list[Write] = []
    mine = None
    for one in stored:
        if one.entry.node == node:
            mine = one
        elif wanted is not None:
            writes += _plan_other(wanted, one)
    if wanted is None:
        return [Delete(mine)] if mine is not None else []
    if mine is None or mine.entry != wanted:
        return [Put(wanted), *writes]
    return writes


def _plan_other(wanted: Entry, other: Stored) -> Iterator[Write]:
    """Without the addresses that this node announces; not at all if nothing is left."""
    taken = {address.ip for address in wanted.addresses}
    entry = other.entry
    addresses = tuple(address for address in entry.addresses if address.ip not in taken)
    conflicts = tuple(stranger for stranger in entry.conflicts if stranger.ip not in taken)
    left = replace(entry, addresses=addresses, conflicts=conflicts)
    if left == entry:
        return
    yield Put(left, other.version) if addresses or conflicts else Delete(other)
