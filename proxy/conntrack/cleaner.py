"""Keeps UDP flows in step with what the kernel's table says, off the loop's path: desired against actual.

After each write that touched a Service with UDP ports the flows to its frontends are compared, and once more a little
later, for a packet that was on its way through the table during the write. After the first write, and every five
minutes, all are compared: whatever happened while nobody looked is mended, and what is right stays, so a restart cuts
no flow. Where that write made our tables anew, TCP connections that nobody has answered or translated go as well.
"""

import queue
import threading
import time
from collections.abc import Callable, Collection, Mapping
from itertools import chain
from typing import NamedTuple, Protocol

import structlog

from endpointslice.types import IP, Family, ServiceName
from proxy import metrics
from proxy.commits import Commit
from proxy.conntrack.coming import Coming
from proxy.conntrack.flows import Judgement, KeepSets, Sockets, added_frontends, deleted_targets
from proxy.conntrack.netlink import FlowTable, Swept
from proxy.kernel.change import Change, KernelError
from proxy.planner.frontends import ClaimKey

log = structlog.get_logger()

FULL_S = 300.0  # how often all flows are compared
AGAIN_S = 2.0  # how long after a write the flows that it touched are compared once more
RETRY_S = 30.0  # after an error
_REST = 4.0  # rest after a look, in its own length, so that a large table and many changes don't take a whole core
_MOST_REST_S = 2.0  # but no longer: flows wait for their next look
_MOST_GONE = 10_000  # frontends that are remembered while flows can't be looked at
_REPEATS = 3  # of a look during which the kernel rebuilt its table


class Flows(Protocol):
    """What the cleaner needs of the kernel; `proxy.conntrack.netlink` is the real one."""

    def sweep(self, family: Family, judgement: Judgement, coming: Coming) -> Swept:
        """Delete the family's stale flows, but for those to endpoints that are coming when they are seen."""
        ...

    def close(self) -> None:
        """Free it."""
        ...


Gone = Mapping[ClaimKey, Sockets]


class Due(NamedTuple):
    """What to compare, and when."""

    at_s: float
    names: frozenset[ServiceName] | None  # None: every Service
    gone: Gone  # frontends that may be nobody's now, and endpoints that our table had for them
    fresh: Sockets = frozenset()  # TCP frontends that our table didn't have before


class Cleaner:
    """Observes the loop's writes and commits; its thread owns everything else."""

    def __init__(self, families: Collection[Family], open_flows: Callable[[], Flows] = FlowTable) -> None:
        self._families = tuple(families)
        self._open_flows = open_flows
        self._inbox: queue.SimpleQueue[Commit | None] = queue.SimpleQueue()
        self._keeps = KeepSets()
        self._coming = Coming()
        self._node_addresses: frozenset[IP] = frozenset()
        self._due: list[Due] = []
        self._rest_until_s = float("-inf")
        self._flows: Flows | None = None  # opened by the thread that uses it
        self._warned = False
        self._thread = threading.Thread(target=self._run, name="conntrack", daemon=True)

    def start(self) -> None:
        """Begin, in this thread's network namespace."""
        self._thread.start()

    def stop(self) -> None:
        """End after what is being done."""
        self._inbox.put(None)
        self._thread.join()

    def writing(self, change: Change) -> None:
        """Called by the loop's thread."""
        self._coming.write(change)

    def committed(self, commit: Commit) -> None:
        """Called by the loop's thread."""
        self._coming.commit()
        self._inbox.put(commit)

    def _run(self) -> None:
        while self._take():
            self.work(time.monotonic())
        self._close()

    def _take(self) -> bool:
        """Wait for a commit or until something is due, then note all commits that are there; False: stop."""
        wait_s = None
        if self._due:
            wait_s = max(
                0.0, self._rest_until_s - time.monotonic(), min(due.at_s for due in self._due) - time.monotonic()
            )
        try:
            commit = self._inbox.get(timeout=wait_s)
            while commit is not None:
                self.note(commit, time.monotonic())
                self._coming.know()
                commit = self._inbox.get_nowait()
        except queue.Empty:
            return True
        return False

    def note(self, commit: Commit, now_s: float) -> None:
        """Put what the commit calls for on the list of what is due."""
        if commit.touched is None:
            changed = frozenset(commit.snapshot.services) | self._keeps.names()
        else:
            changed = commit.touched.services
        touched: frozenset[ServiceName] | None = self._keeps.update(commit.snapshot, changed)
        gone = deleted_targets(commit.change)
        fresh: Sockets = frozenset()
        if commit.touched is None:
            fresh = added_frontends(commit.change, commit.node_addresses)
        if commit.touched is None or commit.node_addresses != self._node_addresses:
            self._node_addresses = commit.node_addresses
            touched = None
        if touched is None or touched or gone:
            self._due += [Due(now_s, touched, gone, fresh), Due(now_s + AGAIN_S, touched, gone, fresh)]

    def work(self, now_s: float) -> None:
        """Do all that is due, as one."""
        due = [one for one in self._due if one.at_s <= now_s]
        if not due or now_s < self._rest_until_s:
            return
        self._due = [one for one in self._due if one.at_s > now_s]
        gone: dict[ClaimKey, Sockets] = {}
        for one in due:
            for key, sockets in one.gone.items():
                gone[key] = gone.get(key, frozenset()) | sockets
        fresh = frozenset(chain.from_iterable(one.fresh for one in due))
        full = any(one.names is None for one in due)
        names = self._keeps.names() if full else frozenset(chain.from_iterable(one.names or () for one in due))
        began_s = time.monotonic()
        judgement = self._keeps.judge(names, self._node_addresses, gone)._replace(fresh=fresh)
        swept = self._sweep(judgement, full=full)
        took_s = time.monotonic() - began_s
        self._rest_until_s = now_s + took_s + min(_REST * took_s, _MOST_REST_S)
        if not swept:
            self._due.append(Due(now_s + RETRY_S, None, gone if len(gone) <= _MOST_GONE else {}, fresh))
        elif full and all(one.names is not None for one in self._due):
            self._due.append(Due(now_s + FULL_S, None, {}))

    def _sweep(self, judgement: Judgement, *, full: bool) -> bool:
        """Whether it worked; if not, why not is said once."""
        try:
            for family in self._families:
                self._sweep_family(family, judgement, full=full)
        except KernelError as error:
            if not self._warned:
                self._warned = True
                log.warning("conntrack_unavailable", why=error.reason, means="UDP flows to endpoints that left stay")
            self._close()
            return False
        return True

    def _close(self) -> None:
        if self._flows is not None:
            self._flows.close()
            self._flows = None

    def _sweep_family(self, family: Family, judgement: Judgement, *, full: bool) -> None:
        started_s = time.monotonic()
        self._flows = self._flows or self._open_flows()
        flows = deleted = 0
        for _attempt in range(_REPEATS):
            swept = self._flows.sweep(family, judgement, self._coming)
            flows = max(flows, swept.flows)
            deleted += swept.deleted
            if swept.complete:
                break
        took_s = time.monotonic() - started_s
        metrics.CONNTRACK_SECONDS.labels(family).observe(took_s)
        metrics.CONNTRACK_DELETED.labels(family).inc(deleted)
        if deleted:
            log.info(
                "conntrack_cleaned", family=family, deleted=deleted, flows=flows, full=full, took_s=round(took_s, 4)
            )
