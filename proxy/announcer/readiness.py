"""Since when Nodes aren't Ready, and for which of them that counts. No I/O.

What the API says of readiness is hearsay of kubelets: after an outage of the API server all Nodes are NotReady, and
come back one by one. So a Node counts as NotReady only after half a minute of unbroken watching in which at least half
of all Nodes were Ready; else the API server's way to the nodes is what is broken, or was just now, and nothing moves.
"""

from collections.abc import Iterable, Mapping

import msgspec

from endpointslice.types import NodeName
from proxy.addresses.types import NodeState

NOT_READY_S = 30.0  # a kubelet writes its status every 10 s


class Readiness(msgspec.Struct, frozen=True):
    """What is remembered from look to look."""

    since_s: Mapping[NodeName, float] = {}  # of those that aren't Ready: since when that was to be believed
    lost: frozenset[NodeName] = frozenset()  # those for which it counts


def watch_readiness(before: Readiness, nodes: Iterable[NodeState], now: float, *, connected: bool) -> Readiness:
    """As of now; `connected`: whether changes of Nodes would reach us."""
    known = {node.name: node.ready for node in nodes}
    unready = [name for name, ready in known.items() if not ready]
    believable = connected and len(unready) * 2 <= len(known)
    since_s = {name: before.since_s.get(name, now) if believable else now for name in unready}
    lost = before.lost.intersection(unready).union(name for name in unready if now - since_s[name] >= NOT_READY_S)
    return Readiness(since_s, lost)
