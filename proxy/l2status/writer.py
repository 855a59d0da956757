"""EFFECT: writes status objects and Events of what this node's announcer owns, from a thread of its own.

The datapath waits for nothing here. While nothing changes, no request is made.
"""

import threading
import time

import structlog

from endpointslice.snapshot import Snapshot
from endpointslice.types import NodeName, Service, ServiceName
from proxy.announcer.ownership import Ownership
from proxy.commits import Commit
from proxy.l2status.book import USUAL, Book, Waits
from proxy.l2status.ledger import NOTHING, Ledger, Wish, due_s, expire, hear, list_notices, make_wish
from proxy.l2status.wire import OWN, metallb
from proxy.notices import Tell
from proxy.sources.transport import ApiServer

log = structlog.get_logger()

GATHER_S = 0.2  # what comes within so long is looked at together


class StatusWriter:
    """An Observer, and who is told what an announcer owns."""

    def __init__(self, api: ApiServer, namespace: str, node: NodeName, tell: Tell, waits: Waits = USUAL) -> None:
        """`namespace`: of MetalLB's objects."""
        self._node = node
        self._tell = tell
        self._news = threading.Condition()  # guards the next four, between those who bring news and this thread
        self._snapshot: Snapshot | None = None
        self._touched: set[ServiceName] | None = None  # since this thread last looked; None: anything
        self._told: list[Ownership] = []
        self._stopping = False
        self._ledger: Ledger = NOTHING
        self._services: dict[ServiceName, Service] = {}  # those that have load-balancer addresses
        self._wish = Wish({}, frozenset())
        self._books = tuple(Book(api, dialect, node, self._uid_of, waits) for dialect in (OWN, metallb(namespace)))

    def committed(self, commit: Commit) -> None:
        """Note it; this thread looks what it means."""
        with self._news:
            self._snapshot = commit.snapshot
            if commit.touched is None:
                self._touched = None
            elif self._touched is not None:
                self._touched |= commit.touched.services
            if self._ledger.begun:
                self._news.notify()

    def hear(self, ownership: Ownership) -> None:
        """Note what an announcer owns."""
        with self._news:
            self._told.append(ownership)
            self._news.notify()

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._run, name="l2-status", daemon=True).start()

    def stop(self) -> None:
        """Write nothing more."""
        with self._news:
            self._stopping = True
            self._news.notify()

    def _run(self) -> None:
        while self._wait():
            try:
                self._take()
                for book in self._books:
                    book.turn(self._wish, self._is_quiet)
            except Exception:
                log.exception("status_failed")
                time.sleep(GATHER_S)

    def _wait(self) -> bool:
        """Returns when there is something to do; whether to go on."""
        with self._news:
            if not self._has_news():
                dues = [due for due in (due_s(self._ledger), *(book.due_s for book in self._books)) if due is not None]
                self._news.wait(max(0.0, min(dues) - time.monotonic()) if dues else None)
        time.sleep(GATHER_S)
        return not self._stopping

    def _has_news(self) -> bool:
        return self._stopping or bool(self._told) or (self._ledger.begun and self._touched != set())

    def _is_quiet(self) -> bool:
        with self._news:
            return not self._has_news()

    def _take(self) -> None:
        with self._news:
            snapshot = self._snapshot
            if snapshot is None:  # the kernel hasn't agreed to anything yet
                return
            told, self._told = self._told, []
            touched, self._touched = self._touched, set()
        changed = self._take_services(snapshot, touched)
        before = self._ledger
        now = time.monotonic()
        for ownership in told:
            self._ledger = hear(self._ledger, ownership, now)
        self._ledger = expire(self._ledger, now)
        if not self._ledger.begun or (self._ledger is before and not changed):
            return
        for notice in list_notices(before, self._ledger, self._services, self._node):
            self._tell(notice)
        self._take_wish(review=self._ledger.heals != before.heals or not before.begun)

    def _take_services(self, snapshot: Snapshot, touched: set[ServiceName] | None) -> bool:
        """Whether any of those with addresses changed in what is written of them."""
        names = touched if touched is not None else self._services.keys() | snapshot.services.keys()
        changed = False
        for name in names:
            old, new = self._services.get(name), snapshot.services.get(name)
            if new is None or not new.load_balancer_ips:
                changed |= self._services.pop(name, None) is not None
                continue
            self._services[name] = new
            changed |= old is None or (old.load_balancer_ips, old.uid) != (new.load_balancer_ips, new.uid)
        return changed

    def _take_wish(self, *, review: bool) -> None:
        before, after = self._wish.entries, make_wish(self._ledger, self._services, self._node)
        self._wish = after
        names = before.keys() | after.entries.keys()
        changed = {name for name in names if before.get(name) != after.entries.get(name)}
        for book in self._books:
            if review:
                book.review()
            else:
                book.mark(changed)

    def _uid_of(self, name: ServiceName) -> str:
        service = self._services.get(name)
        return service.uid if service is not None else ""
