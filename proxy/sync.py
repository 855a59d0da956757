"""The loop: one thread owns Snapshot, desired and installed, and decides the order of effects.

Others post messages to its inbox. Nothing is written before every kind's first complete list; afterwards a change is
written at once when idle, and changes that come close together are written as one.
"""

import queue
import time
from collections import Counter as Tally
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

import structlog

from endpointslice.snapshot import EMPTY, Changed, Listed, Snapshot, Touched, apply_events
from endpointslice.types import IP, Kind
from proxy import metrics
from proxy.commits import Commit, Forerunner, Observer, announce
from proxy.events import Batch, count_changes, merge_touched, new_skipped, new_triggers
from proxy.health import Health
from proxy.kernel.change import Change, Counters, Elements, Installed, KernelError, MapChange
from proxy.kernel.ruleset import SetId
from proxy.memory import prepare_memory, settle_memory
from proxy.messages import Events, ForeignChange, HostAddresses, Message, Stop
from proxy.metrics import Published
from proxy.pacing import LastSync, Pacing, next_sync_s
from proxy.planner.detector import waits_for_pod_cidrs
from proxy.planner.fragments import Label
from proxy.planner.planner import NOTHING, Moment, Planner
from proxy.planner.settings import Settings
from proxy.sources import Source

log = structlog.get_logger()

FOREIGN_GAP_S = 0.2  # a program that keeps editing our tables is answered at most this often
_MOST_TRIGGERS = 10_000  # of changes that wait, as when the kernel refuses for hours; the newest count
_MOST_MESSAGES = 10_000  # that are handled before it is looked whether a sync is due


class Kernel(Protocol):
    """What the loop needs of the kernel; `proxy.kernel.netlink` is the real one."""

    def read(self) -> Installed | None:
        """What our tables hold; None: install."""
        ...

    def install(self, elements: Mapping[SetId, Elements]) -> Installed:
        """Make our tables anew, with these elements, in one transaction."""
        ...

    def run(self, change: Change, installed: Installed) -> Counters:
        """One transaction; then `installed` includes it."""
        ...


class Loop:
    """The daemon's state and its one writer."""

    def __init__(
        self, settings: Settings, source: Source, kernel: Kernel, pacing: Pacing, observers: Sequence[Observer] = ()
    ) -> None:
        self.inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.planner = Planner(settings)
        self._settings = settings
        self._source = source
        self._kernel = kernel
        self._pacing = pacing
        self._observers = observers
        self._forerunners = [one for one in observers if isinstance(one, Forerunner)]
        self._uncommitted: Touched | None = None  # since the last commit; None: anything may differ
        self._snapshot: Snapshot = EMPTY
        self._touched: Touched = NOTHING
        self._missing = set(source.kinds)  # kinds without a first complete list
        self._installed: Installed | None = None  # None: unknown, read back before the next change
        self._host: frozenset[IP] = frozenset()
        self._last = LastSync()
        self._waiting_since_s: float | None = None  # the oldest change that isn't in the kernel
        self._not_before_s = float("-inf")
        self._owners_until_s: float | None = None  # how long the first write waits for owners of pods
        self._triggers: deque[datetime] = deque(maxlen=_MOST_TRIGGERS)
        self._started = datetime.now(UTC)
        self._updated = self._started
        self._synced = False
        self.published = Published(EMPTY, {}, {}, {}, {})

    def run(self) -> None:
        """Work until Stop; an error that isn't expected is logged with its trace, counted, and everything redone."""
        prepare_memory()
        while self._take(self._wait_s()):
            due_s = self._due_s()
            if due_s is None or due_s > time.monotonic():
                continue
            try:
                self._sync()
            except KernelError as error:
                self._refused(error.reason)
            except Exception:
                log.exception("loop_failed")
                metrics.LOOP_ERRORS.inc()
                self.planner = Planner(self._settings)  # the old one may have stopped half way
                self._uncommitted = None
                self._refused("an error of ours")

    def _due_s(self) -> float | None:
        """When to sync, if no message comes; None: there is nothing to do."""
        if self._missing or (not self._synced and waits_for_pod_cidrs(self._settings, self._snapshot)):
            return None
        wanted_s = self._waiting_since_s
        if wanted_s is None:
            wanted_s = self.planner.next_hold_s()
        if wanted_s is None:
            return None
        return max(wanted_s, next_sync_s(self._pacing, self._last), self._not_before_s)

    def _wait_s(self) -> float | None:
        due_s = self._due_s()
        return None if due_s is None else max(0.0, due_s - time.monotonic())

    def _take(self, wait_s: float | None) -> bool:
        """Handle every message that is there, waiting for the first; False after Stop. All events are one batch."""
        batch: list[Changed | Listed] = []
        for message in self._messages(wait_s):
            match message:
                case Stop():
                    return False
                case Events(events):
                    batch += events
                case HostAddresses(addresses):
                    if addresses != self._host:
                        self._host = addresses
                        self._queue()
                case ForeignChange():
                    self._doubt()
        if batch:
            self._apply(tuple(batch))
        return True

    def _messages(self, wait_s: float | None) -> Iterator[Message]:
        try:
            yield self.inbox.get(timeout=wait_s)
            for _ in range(_MOST_MESSAGES):
                yield self.inbox.get_nowait()
        except queue.Empty:
            pass

    def _doubt(self) -> None:
        metrics.FOREIGN_CHANGES.inc()
        if self._installed is not None:
            log.warning("foreign_change_seen")
        self._installed = None
        self._not_before_s = self._last.finished_s + FOREIGN_GAP_S
        self._queue()

    def _apply(self, batch: Batch) -> None:
        before = self._snapshot
        self._snapshot, touched = apply_events(before, batch)
        self.published = self.published._replace(snapshot=self._snapshot)
        for event in batch:
            if isinstance(event, Listed):
                self._missing.discard(event.kind)
        for skipped in new_skipped(before, self._snapshot, batch):
            log.info("object_skipped", object=skipped.object, why=skipped.reason, detail=skipped.detail)
        if touched == NOTHING and self._synced:
            return
        changes = count_changes(batch)
        metrics.ENDPOINT_CHANGES.inc(changes[Kind.ENDPOINT_SLICE])
        metrics.SERVICE_CHANGES.inc(changes[Kind.SERVICE])
        metrics.ENDPOINT_CHANGES_PENDING.inc(changes[Kind.ENDPOINT_SLICE])
        metrics.SERVICE_CHANGES_PENDING.inc(changes[Kind.SERVICE])
        self._triggers.extend(new_triggers(before, batch, self._started))
        self._touched = merge_touched(self._touched, touched)
        if touched.pods:
            self._not_before_s = float("-inf")
        self._queue()

    def _queue(self) -> None:
        if self._waiting_since_s is None:
            self._waiting_since_s = time.monotonic()
        for family in metrics.FAMILIES:
            metrics.LAST_QUEUED.labels(family).set_to_current_time()

    def _sync(self) -> None:
        started = time.monotonic()
        full = self._installed is None
        installed = self._kernel.read() if self._installed is None else self._installed
        held = installed.elements if installed is not None else {}
        self.planner.update(self._snapshot, self._touched, Moment(held, self._host, started))
        if self._uncommitted is not None:
            self._uncommitted = merge_touched(self._uncommitted, self._touched)
        self._touched = NOTHING
        for pod in self.planner.wanted_pods:
            self._source.request_pod(pod, "")
        if self._waits_for_owners(started):
            return
        change, counters = self._write(installed, full=full)
        added = sum(len(part.add) for part in change.sets.values())
        deleted = sum(len(part.delete) for part in change.sets.values())
        metrics.ELEMENTS_WRITTEN.labels("add").inc(added)
        metrics.ELEMENTS_WRITTEN.labels("delete").inc(deleted)
        self._finish(change, counters)
        took_s = time.monotonic() - started
        for family in metrics.FAMILIES:
            metrics.SYNC_SECONDS.labels(family).observe(took_s)
            (metrics.FULL_SYNC_SECONDS if full else metrics.PARTIAL_SYNC_SECONDS).labels(family).observe(took_s)
        if added or deleted or full:
            log.info("sync_done", added=added, deleted=deleted, full=full, took_s=round(took_s, 5))
        if not self._synced:
            self._synced = True
            log.info("first_sync_done", services=len(self._snapshot.services))
            settle_memory()

    def _waits_for_owners(self, now_s: float) -> bool:
        """True while the first write waits for the owners of this node's pods, where they are asked for one by one.

        A former daemon knew them: without them its same-node traffic would go elsewhere, and back a moment later.
        """
        if self._synced or not self.planner.wanted_pods or Kind.POD in self._source.kinds:
            return False
        if self._owners_until_s is None:
            self._owners_until_s = now_s + self._pacing.owners_s
        self._not_before_s = self._owners_until_s
        return now_s < self._owners_until_s

    def _write(self, installed: Installed | None, *, full: bool) -> tuple[Change, Counters]:
        """Bring the kernel to the desired elements; what that changed, and counts that ended."""
        desired = self.planner.desired
        self.published = self.published._replace(writing=True)
        if installed is None:
            change = Change({set_id: MapChange({}, part) for set_id, part in desired.elements.items()})
            announce(self._forerunners, change)
            self._installed = self._kernel.install(desired.elements)
            log.info("table_installed")
            self._uncommitted = None  # until now packets went by without us
            return change, {}
        if full:
            desired.doubt(installed.elements)
        change = desired.pending(installed.elements)
        announce(self._forerunners, change)
        counters = self._kernel.run(change, installed) if change.sets else {}
        self._installed = installed
        return change, counters

    def _finish(self, change: Change, counters: Counters) -> None:
        """The kernel agreed: note it, and let others see it."""
        now = datetime.now(UTC)
        self._publish(counters)
        self.planner.desired.confirm()
        self._last = LastSync(time.monotonic())
        self._waiting_since_s = None
        self._updated = now
        for family in metrics.FAMILIES:
            for trigger in self._triggers:
                metrics.PROGRAMMING_SECONDS.labels(family).observe(max(0.0, (now - trigger).total_seconds()))
            metrics.LAST_SYNC.labels(family).set_to_current_time()
        metrics.ENDPOINT_CHANGES_PENDING.set(0)
        metrics.SERVICE_CHANGES_PENDING.set(0)
        self._triggers.clear()
        commit = Commit(self._snapshot, self._uncommitted, self.planner.node_addresses, change)
        self._uncommitted = NOTHING
        for observer in self._observers:
            observer.committed(commit)

    def _publish(self, ended: Counters) -> None:
        planner = self.planner
        totals = self.published.totals
        if ended:
            sums = Tally[Label](totals)
            for key, packets in ended.items():
                if (label := planner.desired.counted(key)) is not None and label.counted:
                    sums[label] += packets
            totals = {label: count for label, count in sums.items() if label.service in self._snapshot.services}
        self.published = Published(
            self._snapshot, planner.desired.labels, totals, dict(planner.tiers.sums), dict(planner.no_local.sums)
        )

    def _refused(self, reason: str) -> None:
        for family in metrics.FAMILIES:
            metrics.SYNC_FAILURES.labels(family).inc()
        self._installed = None
        self.published = self.published._replace(writing=False)
        self._last = LastSync(time.monotonic(), self._last.failures + 1)
        log.error(
            "sync_failed", why=reason, retry_s=round(next_sync_s(self._pacing, self._last) - self._last.finished_s, 2)
        )

    def health(self) -> Health:
        """For /healthz; called by other threads."""
        waiting = self._waiting_since_s
        stale = waiting is not None and time.monotonic() - waiting > 2 * self._pacing.longest_retry_s
        node = self._snapshot.nodes.get(self._settings.node)
        return Health(
            healthy=not (stale and self._synced),
            ready=self._synced,
            node_eligible=node is None or not node.leaving,
            last_updated=self._updated,
            families=tuple(family.value for family in self.planner.families),
        )
