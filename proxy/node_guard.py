"""Whether the daemon should be started anew because its Node was deleted or got another address.

What was decided once at start by whoever runs us (a unit file, a pod's spec with the node's address in it) may be wrong
then, and kube-proxy ends for the same two reasons. The rules stay, and the next start adopts them.
"""

from collections.abc import Callable, Iterable

from endpointslice.addresses import family_of
from endpointslice.types import IP, Family, Node, NodeName
from proxy.commits import Commit


def why_restart(before: Node | None, after: Node | None) -> str:
    """A sentence, or "" if there is no reason: a Node that appears, or gets its first address, is none."""
    if before is None:
        return ""
    if after is None:
        return f"the Node {before.name} was deleted"
    had, has = _primary(before.addresses), _primary(after.addresses)
    if any(has.get(family) != ip for family, ip in had.items()):
        return f"the Node {before.name} changed its address from {_say(had)} to {_say(has) or 'none'}"
    return ""


def _primary(addresses: Iterable[IP]) -> dict[Family, IP]:
    first: dict[Family, IP] = {}
    for ip in addresses:
        first.setdefault(family_of(ip), ip)
    return first


def _say(addresses: dict[Family, IP]) -> str:
    return ",".join(addresses.values())


class NodeGuard:
    """An Observer: compares the Node of each commit with the one before."""

    def __init__(self, node: NodeName, end: Callable[[str], None]) -> None:
        """`end` is called with the reason."""
        self._node = node
        self._end = end
        self._seen: Node | None = None

    def committed(self, commit: Commit) -> None:
        """Called by the loop."""
        node = commit.snapshot.nodes.get(self._node)
        reason = why_restart(self._seen, node)
        self._seen = node
        if reason:
            self._end(reason)
