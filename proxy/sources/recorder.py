"""EFFECT: writes Notices to the API server as Events, best effort, from a thread of its own.

A refusal for want of rights is told once and the Event dropped; while the server can't be reached the newest wait.
"""

import queue
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
import structlog

from endpointslice.types import NodeName
from proxy.notices import Notice
from proxy.sources.transport import ApiError, ApiServer
from proxy.sources.watch import PATIENT, Patience

log = structlog.get_logger()

MAX_WAITING = 64  # notices; more are dropped
BURST = 16  # Events in a row, and then one every REFILL_S: a port that flaps must not load the API server
REFILL_S = 10.0
_MAX_NOTE = 1024  # the API's limit
_TRIES = 8
_CONTROLLER = "closeby"
_LASTING = range(400, 500)  # HTTP codes that another try won't change, but for "too many requests"
_TOO_MANY = 429


class Limit(NamedTuple):
    """How many Events in a row, and one every so many seconds after that."""

    burst: int = BURST
    refill_s: float = REFILL_S


USUAL = Limit()


class Budget(NamedTuple):
    """How many Events may be written now: a token bucket."""

    tokens: float = BURST
    at_s: float = 0.0
    limit: Limit = USUAL

    def spend(self, now_s: float) -> "Budget | None":
        """What is left after one more Event; None: it must not be written."""
        tokens = min(float(self.limit.burst), self.tokens + (now_s - self.at_s) / self.limit.refill_s)
        return Budget(tokens - 1, now_s, self.limit) if tokens >= 1 else None


def render_event(notice: Notice, node: NodeName, at: datetime) -> tuple[str, bytes]:
    """Path and body of an events.k8s.io/v1 Event; one about a Node goes into the namespace default, as kube-proxy's."""
    namespace = notice.namespace or "default"
    about = {"apiVersion": notice.api_version, "kind": notice.kind, "name": notice.name}
    if notice.namespace:
        about["namespace"] = notice.namespace
    if notice.kind == "Node":
        about["uid"] = notice.name  # kubelet and kube-proxy write the name here, and kubectl describe looks for it
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{notice.name}.{int(at.timestamp() * 1e6):x}", "namespace": namespace},
        "eventTime": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": _CONTROLLER,
        "reportingInstance": f"{_CONTROLLER}-{node}",
        "action": notice.action,
        "reason": notice.reason,
        "regarding": about,
        "note": notice.note[:_MAX_NOTE],
        "type": "Warning" if notice.warning else "Normal",
    }
    return f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", msgspec.json.encode(event)


class EventRecorder:
    """Takes Notices from any thread, and writes them in its own from `start` to `stop` or the process's end."""

    def __init__(self, api: ApiServer, node: NodeName, patience: Patience = PATIENT, limit: Limit = USUAL) -> None:
        self._api = api
        self._node = node
        self._patience = patience
        self._waiting: queue.Queue[Notice | None] = queue.Queue(
            max(MAX_WAITING, limit.burst)
        )  # None: wake up, and stop
        self._stopping = threading.Event()
        self._budget = Budget(limit.burst, time.monotonic(), limit)
        self._refusal = ""  # that the log last told of
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; what waits is dropped."""
        self._stopping.set()
        with suppress(queue.Full):
            self._waiting.put_nowait(None)
        if self._thread.is_alive():
            self._thread.join()

    def tell(self, notice: Notice) -> None:
        """Have an Event written, some time; a Tell."""
        try:
            self._waiting.put_nowait(notice)
        except queue.Full:
            log.debug("event_dropped", reason=notice.reason, about=notice.name)

    def _run(self) -> None:
        while (notice := self._waiting.get()) is not None and not self._stopping.is_set():
            budget = self._budget.spend(time.monotonic())
            if budget is None:
                log.debug("event_dropped", reason=notice.reason, about=notice.name)
                continue
            self._budget = budget
            self._write(*render_event(notice, self._node, datetime.now(UTC)))

    def _write(self, path: str, body: bytes) -> None:
        for attempt in range(1, _TRIES + 1):
            try:
                self._api.create(path, body)
            except ApiError as error:
                if error.status in _LASTING and error.status not in {_TOO_MANY, 401}:
                    self._give_up(error)
                    return
                if self._stopping.wait(self._patience.delay(attempt)):
                    return
            else:
                self._refusal = ""
                return

    def _give_up(self, error: ApiError) -> None:
        if self._refusal != str(error.status):
            self._refusal = str(error.status)
            log.warning("event_unwritten", needs="create on events in events.k8s.io", error=str(error))
