"""EFFECT: one kind of status object on the API server, brought to what it should say. For one thread.

The newest wish is written, never what was wished meanwhile; without a change nothing is asked or written.
"""

import time
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

import msgspec
import structlog

from endpointslice.types import NodeName, ServiceName
from proxy.l2status.ledger import Wish
from proxy.l2status.metrics import WRITES
from proxy.l2status.plan import plan_writes
from proxy.l2status.types import Delete, Put, Stored, Write
from proxy.l2status.wire import (
    PLURAL,
    Dialect,
    decode_page,
    list_path,
    narrow,
    object_path,
    render_object,
    select_node,
    select_services,
)
from proxy.sources.recorder import Budget, Limit
from proxy.sources.transport import ApiError, ApiServer, Body
from proxy.sources.watch import draw_delay

log = structlog.get_logger()

PACE = Limit(burst=100, refill_s=0.05)  # a node that takes over thousands must not load the API server
BATCH = 32  # Services that are looked at together
LOOK_AGAIN_S = 20.0  # after a write: longer than anybody goes by what was so before (GONE_S)
REFUSALS, PATIENCE_S = 7, 2.0  # in a row, before a refusal is believed; between the first two, and then twice as long
AGAIN_S = 1.0  # after somebody else's write came between
_PAGE = "500"
_APPLY = "application/apply-patch+yaml"  # JSON is YAML
_WRITER = "?fieldManager=closeby&force=true"
_REFUSED, _FORBIDDEN, _GONE, _CHANGED, _INVALID = 400, 403, 404, 409, 422

Uids = Callable[[ServiceName], str]


class Waits(NamedTuple):
    """How long to wait for what."""

    look_again_s: float = LOOK_AGAIN_S
    patience_s: float = PATIENCE_S


USUAL = Waits()


class Book:
    """What is to be looked at, and when."""

    def __init__(self, api: ApiServer, dialect: Dialect, node: NodeName, uid_of: Uids, waits: Waits = USUAL) -> None:
        self._look_again_s, self._patience_s = waits
        self._api = api
        self._dialect = dialect
        self._node = node
        self._uid_of = uid_of
        self._dirty: dict[ServiceName, None] = {}  # in the order in which they changed
        self._again_s: dict[ServiceName, float] = {}  # when to look again, in this order
        self._to_review = False
        self._budget = Budget(PACE.burst, time.monotonic(), PACE)
        self._failures = 0  # in a row
        self._refusals = 0  # in a row
        self._told = ""  # what the log last told of
        self._next_s: float | None = None  # None: when something changes

    @property
    def due_s(self) -> float | None:
        """When it goes on by itself."""
        if self._next_s is not None or self._failures or self._refusals or self._told:
            return self._next_s
        return next(iter(self._again_s.values()), None)

    def review(self) -> None:
        """Compare all of this node's objects with the wish, at the next turn."""
        self._to_review = True
        self._next_s = time.monotonic()

    def mark(self, services: set[ServiceName]) -> None:
        """Their wish has changed."""
        self._dirty |= dict.fromkeys(sorted(services))
        if services and not self._failures and not self._refusals:
            self._next_s = time.monotonic()

    def turn(self, wish: Wish, goes_on: Callable[[], bool]) -> None:
        """Write what is due, until all is written, something fails, or `goes_on` says no."""
        if self.due_s is None or time.monotonic() < self.due_s:
            return
        self._next_s = None
        try:
            if self._to_review:
                self._review(wish)
            self._look_again()
            while self._dirty:
                self._write_some(wish)
                if self._dirty and not goes_on():
                    self._next_s = time.monotonic()
                    return
        except ApiError as error:
            self._wait_after(error)
        except msgspec.DecodeError as error:
            self._wait_after(ApiError(0, f"no list of {PLURAL}: {error}"))
        else:
            self._failures, self._refusals, self._told = 0, 0, ""

    def _review(self, wish: Wish) -> None:
        mine = [one.entry for one in self._list(select_node(self._dialect, self._node)) if one.entry.node == self._node]
        stored = {entry.service: entry for entry in mine}
        for name in sorted(stored.keys() | wish.entries.keys()):
            if stored.get(name) != narrow(self._dialect, wish.entries.get(name)):
                self._dirty[name] = None
        self._to_review = False

    def _look_again(self) -> None:
        """Another node may have written, by what it knew a moment before."""
        now = time.monotonic()
        for name in [name for name, at_s in self._again_s.items() if at_s <= now]:
            del self._again_s[name]
            self._dirty[name] = None

    def _write_some(self, wish: Wish) -> None:
        names = list(islice(self._dirty, BATCH))
        stored: dict[ServiceName, list[Stored]] = {}
        for one in self._list(select_services(self._dialect, names)):
            stored.setdefault(one.entry.service, []).append(one)
        for name in names:
            entry = narrow(self._dialect, wish.entries.get(name))
            writes = plan_writes(entry, wish.held, self._node, stored.get(name, ()))
            if writes:
                self._again_s.pop(name, None)
                self._again_s[name] = time.monotonic() + self._look_again_s
            for write in writes:
                self._spend()
                try:
                    self._send(write)
                except ApiError:
                    self._dirty[name] = self._dirty.pop(name)  # whatever is wrong with it, the others come first
                    raise
            del self._dirty[name]

    def _list(self, selector: str) -> list[Stored]:
        found: list[Stored] = []
        following = ""
        while True:
            query = {"labelSelector": selector, "limit": _PAGE} | ({"continue": following} if following else {})
            stored, following = decode_page(self._dialect, self._api.get(list_path(self._dialect), query))
            found += stored
            if not following:
                return found

    def _spend(self) -> None:
        while (left := self._budget.spend(time.monotonic())) is None:
            time.sleep(PACE.refill_s)
        self._budget = left

    def _send(self, write: Write) -> None:
        """ApiError only if another try, or a right, may help."""
        try:
            if isinstance(write, Delete):
                self._delete(write)
            else:
                self._put(write)
        except ApiError as error:
            WRITES.labels(self._dialect.group, str(error.status)).inc()
            if error.status not in {_GONE, _REFUSED, _INVALID}:
                raise
            if error.status != _GONE:  # such as a Service's namespace, which takes its Services along
                log.warning("status_refused", kind=f"{PLURAL}.{self._dialect.group}", error=str(error))
        else:
            WRITES.labels(self._dialect.group, "ok").inc()

    def _put(self, write: Put) -> None:
        entry = write.entry
        content = msgspec.json.encode(render_object(self._dialect, entry, self._uid_of(entry.service), write.version))
        path = object_path(self._dialect, entry)
        self._api.send(path + _WRITER, Body("PATCH", content, _APPLY))
        if not self._dialect.whole:
            again = msgspec.json.encode(render_object(self._dialect, entry, ""))
            self._api.send(f"{path}/status{_WRITER}", Body("PATCH", again, _APPLY))

    def _delete(self, write: Delete) -> None:
        options = {"preconditions": {"resourceVersion": write.stored.version}}
        path = object_path(self._dialect, write.stored.entry)
        self._api.send(path, Body("DELETE", msgspec.json.encode(options)))

    def _wait_after(self, error: ApiError) -> None:
        """What is left is written later."""
        now = time.monotonic()
        if error.status == _CHANGED:
            self._next_s = now + AGAIN_S
            return
        kind = f"{PLURAL}.{self._dialect.group}"
        if error.status in {_GONE, _FORBIDDEN}:
            self._wait_after_refusal(error, kind)
            return
        self._failures, self._refusals = self._failures + 1, 0
        self._next_s = now + max(AGAIN_S, draw_delay(self._failures))
        if self._failures == 1:
            log.info("status_waits", kind=kind, error=str(error))

    def _wait_after_refusal(self, error: ApiError, kind: str) -> None:
        """A server that starts refuses everybody for some seconds; after that, wait until something changes."""
        self._failures, self._refusals = 0, self._refusals + 1
        if self._refusals < REFUSALS:
            self._next_s = time.monotonic() + self._patience_s * 2 ** (self._refusals - 1)
            return
        self._refusals = 0
        if self._told != str(error.status):
            needs = "the definition" if error.status == _GONE else "list, create, patch and delete"
            log.info("status_unwritten", kind=kind, needs=needs, error=str(error))
        self._told = str(error.status)
