"""Detect mode NodeCIDR: the daemon is started anew when its Node's podCIDRs change, or don't come, as kube-proxy is."""

import threading
from collections.abc import Callable

from endpointslice.types import CIDR, NodeName
from proxy.commits import Commit

WAIT_S = 300.0  # kube-proxy's


class PodCIDRGuard:
    """An Observer: compares the Node's podCIDRs of each commit with the first ones."""

    def __init__(self, node: NodeName, end: Callable[[str], None], wait_s: float = WAIT_S) -> None:
        """`end` is called with the reason, if the CIDRs change, or no commit comes within `wait_s`."""
        self._node = node
        self._end = end
        self._wait_s = wait_s
        self._seen: tuple[CIDR, ...] = ()

    def start(self) -> None:
        """Begin to wait for the first commit."""
        timer = threading.Timer(self._wait_s, self._say_late)
        timer.daemon = True
        timer.start()

    def _say_late(self) -> None:
        if not self._seen:
            self._end(
                f"the Node {self._node} has no podCIDRs after {self._wait_s:.0f} s, which detect mode NodeCIDR needs"
            )

    def committed(self, commit: Commit) -> None:
        """Called by the loop."""
        node = commit.snapshot.nodes.get(self._node)
        if node is None:
            return  # deleted, which is told elsewhere
        if self._seen and node.pod_cidrs != self._seen:
            after = ",".join(node.pod_cidrs) or "none"
            self._end(f"the Node {self._node} changed its podCIDRs from {','.join(self._seen)} to {after}")
        self._seen = node.pod_cidrs
