"""Endpoints that a write may have brought into the table before the judge of flows knows of them. Two threads use it.

A flow to one of them is new, and not stale. Without this the first datagrams to a pod that has just become ready lost
their answers now and then: a look at the flows that an earlier write had called for met them.
"""

import threading
from collections import deque

from proxy.conntrack.flows import Sockets, added_targets
from proxy.kernel.change import Change


class Coming:
    """The writer tells before it writes, and once the kernel has agreed; the judge, once it knows as much."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._written: Sockets = frozenset()  # since the last commit; what was refused may have been written, too
        self._committed: deque[Sockets] = deque()
        self._sockets: Sockets = frozenset()

    @property
    def sockets(self) -> Sockets:
        """All of them: read after a flow was seen, it holds where that flow's answers may come from."""
        return self._sockets

    def write(self, change: Change) -> None:
        """About to be written."""
        with self._lock:
            self._written |= added_targets(change)
            self._sockets |= self._written

    def commit(self) -> None:
        """All that was told is of this commit."""
        with self._lock:
            self._committed.append(self._written)
            self._written = frozenset()

    def know(self) -> None:
        """The judge knows one commit more."""
        with self._lock:
            self._committed.popleft()
            self._sockets = self._written.union(*self._committed)
