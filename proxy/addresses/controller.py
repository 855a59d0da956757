"""EFFECT: the controller's loop: what is heard goes into the state, the answer that follows is written back.

One thread owns the state; watches and the Lease's thread post to its inbox, and some threads send what it plans.
Nothing is decided before every kind was listed in this term, and nothing is written unless the Lease is held then.
"""

import queue
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain, islice
from typing import NamedTuple

import structlog

from endpointslice.types import ServiceName
from proxy.addresses.allocate import Answer, Classes, allocate
from proxy.addresses.decode import Change
from proxy.addresses.follow import Following
from proxy.addresses.messages import Heard, Leading, Message, Stop
from proxy.addresses.plan import Write, describe_pool, plan_conflicts, plan_pools, plan_problem_notices, plan_services
from proxy.addresses.state import State, apply_changes, apply_list, build_world, list_problems
from proxy.addresses.types import Condition, Kind, Service
from proxy.addresses.writer import send_write
from proxy.notices import Tell
from proxy.sources.transport import ApiError, ApiServer
from proxy.sources.watch import draw_delay

log = structlog.get_logger()

QUIET_S = 0.02  # what comes within so long of a message is answered together with it
AT_ONCE = 8  # writes side by side: the server stores each in some milliseconds
MOST_WRITES = 96  # in a row; then what was heard meanwhile is taken in
LATEST_S = 0.2  # a flood of messages is answered at least as often
CHANGED_S = 1.0  # until an object that changed under our write is looked at again, if nothing is heard of it
_GONE, _CHANGED = 404, 409
_REFUSALS = frozenset({400, 405, 422})  # what another try won't change


class Place(NamedTuple):
    """Whose Services, and where the pools are."""

    namespace: str
    classes: Classes


class Outside(NamedTuple):
    """What the loop acts on."""

    api: ApiServer
    tell: Tell
    leads: Callable[[], bool]
    show: Callable[[Answer], None]  # for metrics


class Controller:
    """The loop, from `run` to a Stop in its inbox."""

    def __init__(self, place: Place, outside: Outside) -> None:
        self.inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()  # a signal's handler may post to it
        self._place = place
        self._outside = outside
        self._state = State()
        self._term = 0
        self._answered = -1  # revision of the state that the last answer was for
        self._following: Following | None = None  # None: another replica leads
        self._told_pools: dict[str, Condition] = {}  # written in this term
        self._told_problems: dict[tuple[Kind, str], str] = {}
        self._refused: set[tuple[Kind, str, str]] = set()  # objects by version, whose write the server doesn't take
        self._senders = ThreadPoolExecutor(AT_ONCE, "write")
        self._failures = 0  # of writes, in a row
        self._retry_at_s: float | None = None  # None: everything is written

    def run(self) -> None:
        """Until Stop."""
        while True:
            for message in self._take():
                match message:
                    case Stop():
                        self._follow(active=False)
                        return
                    case Leading(active):
                        self._follow(active=active)
                    case Heard():
                        self._hear(message)
            try:
                if self._is_due():
                    self._answer()
            except Exception:
                log.exception("loop_failed")
                self._wait_after_failure()

    def _take(self) -> list[Message]:
        """At least one message, or none where a retry is due; and all that come right after it."""
        wait_s = None if self._retry_at_s is None else max(0.0, self._retry_at_s - time.monotonic())
        try:
            messages = [self.inbox.get(timeout=wait_s)]
        except queue.Empty:
            return []
        latest_s = time.monotonic() + LATEST_S
        with suppress(queue.Empty):
            while time.monotonic() < latest_s:
                messages.append(self.inbox.get(timeout=QUIET_S))
        return messages

    def _follow(self, *, active: bool) -> None:
        """Begin a term, or end it; either way with nothing known."""
        if self._following is not None:
            self._following.stop()
        self._following = None
        self._state = State()
        self._told_pools, self._told_problems, self._refused = {}, {}, set()
        self._failures, self._retry_at_s, self._answered = 0, None, -1
        if active:
            self._term += 1
            self._following = Following(self._outside.api, self._place.namespace, self._term, self.inbox.put)

    def _hear(self, heard: Heard) -> None:
        if heard.term == self._term and self._following is not None:
            apply = apply_list if heard.listed else apply_changes
            self._state = apply(self._state, heard.kind, heard.changes)

    def _is_due(self) -> bool:
        """Whether all is known, and there is news and no failure to wait after, or the time of what was left over."""
        if self._following is None or not self._state.complete >= self._following.kinds:
            return False
        if self._retry_at_s is not None and time.monotonic() >= self._retry_at_s:
            return True
        return self._state.revision != self._answered and not (self._failures and self._retry_at_s is not None)

    def _answer(self) -> None:
        """Write what differs from the answer, as much as may be written before the inbox is looked at again."""
        started_s = time.monotonic()
        answer = allocate(build_world(self._state, self._place.classes))
        self._outside.show(answer)
        self._tell_problems()
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        services = {ServiceName(name): one for name, one in self._state.of(Kind.SERVICE, Service).items()}
        self._answered = self._state.revision
        planned = plan_services(services, answer, now)
        pools = plan_pools(self._state, answer, self._told_pools, now)
        # Another write of the same Service changes its version, so a conflict's turn comes after that.
        busy = {write.name for write in planned.writes}
        met = [*plan_conflicts(self._state, now)]
        conflicts = [write for write in met if write.name not in busy]
        new = (one for one in chain(planned.writes, pools, conflicts) if self._key(one) not in self._refused)
        writes = [*islice(new, MOST_WRITES)]
        left_over = writes and (planned.postponed or len(conflicts) < len(met) or len(writes) == MOST_WRITES)
        self._retry_at_s = time.monotonic() if left_over else None
        done = 0
        for first in range(0, len(writes), AT_ONCE):
            good, goes_on = self._write(writes[first : first + AT_ONCE])
            done += good
            if not goes_on:
                break
        if writes:
            log.info("answered", written=done, of=len(writes), took_s=round(time.monotonic() - started_s, 4))

    def _write(self, writes: Sequence[Write]) -> tuple[int, bool]:
        """Store them side by side, and take what is stored into the state; how many, and whether to go on."""
        results = [*zip(writes, self._senders.map(self._send, writes), strict=True)]
        for kind in {write.kind for write in writes}:
            stored = [found for write, found in results if isinstance(found, Change) and write.kind is kind]
            self._state = apply_changes(self._state, kind, stored)
        good = 0
        for write, found in results:
            if isinstance(found, Change):
                good += 1
                self._note(write)
        if good:
            self._failures = 0
        failed = [self._goes_on_after(found, write) for write, found in results if isinstance(found, ApiError)]
        return good, all(failed)

    def _send(self, write: Write) -> Change | ApiError:
        """In a thread of the pool."""
        if not self._outside.leads():
            return ApiError(0, "the Lease isn't held")
        try:
            return send_write(self._outside.api, write, self._place.namespace)
        except ApiError as error:
            return error

    def _note(self, write: Write) -> None:
        if write.kind is Kind.POOL:
            self._told_pools[write.name] = describe_pool(self._state, write.name)
        for notice in write.notices:
            self._outside.tell(notice)

    def _goes_on_after(self, error: ApiError, write: Write) -> bool:
        """Whether the next write may do better; what the server refuses isn't sent again until the object changes."""
        if error.status == _GONE:  # its deletion is on its way to us
            self._refused.add(self._key(write))
            return True
        if error.status == _CHANGED:
            self._retry_at_s = time.monotonic() + CHANGED_S  # or when the change is heard of
            return True
        self._wait_after_failure()
        log.warning("write_failed", kind=write.kind, object=write.name, error=str(error), failures=self._failures)
        if error.status in _REFUSALS:
            self._refused.add(self._key(write))
            return True
        return False

    def _wait_after_failure(self) -> None:
        self._failures += 1
        self._retry_at_s = time.monotonic() + max(QUIET_S, draw_delay(self._failures))

    def _key(self, write: Write) -> tuple[Kind, str, str]:
        held = self._state.objects.get(write.kind, {}).get(write.name)
        return write.kind, write.name, held.version if held else ""

    def _tell_problems(self) -> None:
        problems = list_problems(self._state)
        for notice in plan_problem_notices(self._told_problems, problems, self._place.namespace):
            log.warning("object_invalid", kind=notice.kind, object=notice.name, why=notice.note)
            self._outside.tell(notice)
        self._told_problems = problems
