"""Since when Nodes aren't Ready, and for which of them that counts. No I/O.

What the API says of readiness is hearsay of kubelets: after an outage of the API server all Nodes are NotReady, and
come back one by one. So a Node counts as NotReady only once it was so for half a minute of unbroken watching, and only
while at least half of all Nodes are Ready; else the API server's way to the nodes is what is broken, and nothing moves.
"""

from collections.abc import Iterable, Mapping

import msgspec

from endpointslice.types import NodeName
from proxy.addresses.types import NodeState

NOT_READY_S = 30.0  # a kubelet writes its status every 10 s


class Readiness(msgspec.Struct, frozen=True):
    """What is remembered from look to look."""

    since_s: Mapping[NodeName, float] = {}  # of those that aren't Ready: since when we have seen it
    lost: frozenset[NodeName] = frozenset()  # those for which it counts


def watch_readiness(before: Readiness, nodes: Iterable[NodeState], now: float, *, connected: bool) -> Readiness:
    """As of now; `connected`: whether changes of Nodes would reach us. While they don't, nothing is counted anew."""
    known = {node.name: node.ready for node in nodes}
    unready = [name for name, ready in known.items() if not ready]
    since_s = {name: before.since_s.get(name, now) if connected else now for name in unready}
    still = before.lost & since_s.keys()
    if not connected or len(unready) * 2 > len(known):
        return Readiness(since_s, still)
    return Readiness(since_s, still.union(name for name in unready if now - since_s[name] >= NOT_READY_S))
