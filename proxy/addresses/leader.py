"""EFFECT: one active replica, by a Lease; a thread that takes it, renews it, and tells when it is had or lost."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import structlog

from endpointslice.decode import DecodeError
from proxy.addresses.lease import Record, Step, Timing, choose_step, decode_lease, render_lease
from proxy.sources.transport import ApiError, ApiServer, Body

log = structlog.get_logger()

LEASE = "closeby-controller"
JOIN_S = 5.0  # for a request that the server leaves unanswered
_NOT_FOUND, _CONFLICT = 404, 409


class Elector:
    """Owns a thread from `start` to `stop`; `leads` is asked from any thread right before a write."""

    def __init__(self, api: ApiServer, namespace: str, identity: str, timing: Timing = Timing()) -> None:  # noqa: B008  # frozen
        self._api = api
        self._place = namespace, LEASE
        self._identity = identity
        self._timing = timing
        self._until_s = float("-inf")  # how long we may write
        self._seen: Record | None = None
        self._seen_at_s = 0.0  # since when the Lease is as it was last seen
        self._told = False
        self._failure = ""  # that the log last told of
        self._stopping = threading.Event()
        self._tell: Callable[[bool], None] = lambda _active: None
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def start(self, tell: Callable[[bool], None]) -> None:
        """Begin; `tell` is called from the thread with True once this replica leads, and False when it doesn't."""
        self._tell = tell
        self._thread.start()

    def leads(self) -> bool:
        """Whether this replica may write now."""
        return time.monotonic() < self._until_s

    def stop(self) -> None:
        """Give the Lease back, so that another needn't wait for it."""
        self._stopping.set()
        self._thread.join(JOIN_S)
        led, self._until_s = self.leads(), float("-inf")
        if led and self._seen is not None:
            try:
                self._store(self._seen, "", 1.0)
            except (ApiError, DecodeError) as error:
                log.info("lease_kept", why=str(error))

    def _run(self) -> None:
        while True:
            try:
                self._look()
            except (ApiError, DecodeError) as error:
                if self._failure != str(error):
                    log.warning("lease_unreachable", error=str(error), needs="get, create and update on leases")
                self._failure = str(error)
            else:
                self._failure = ""
            if self.leads() is not self._told:
                self._told = not self._told
                log.info("leading" if self._told else "leading_lost", identity=self._identity)
                self._tell(self._told)
            if self._stopping.wait(self._timing.retry_s):
                return

    def _look(self) -> None:
        record = self._read()
        now_s = time.monotonic()
        if record is None or self._seen is None or record.version != self._seen.version:
            self._seen, self._seen_at_s = record, now_s
        step = choose_step(record, self._identity, now_s - self._seen_at_s)
        if step is Step.WAIT:
            self._until_s = float("-inf")
            return
        try:
            self._seen = self._store(record, self._identity, self._timing.duration_s)
        except ApiError as error:
            if error.status == _CONFLICT:  # another was faster; its Lease is seen at the next look
                return
            raise
        self._seen_at_s = now_s
        self._until_s = now_s + self._timing.writable_s  # from before the request: nobody's clock is earlier

    def _read(self) -> Record | None:
        _namespace, name = self._place
        try:
            return decode_lease(self._api.get(f"{self._folder()}/{name}", {}))
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
            return None

    def _store(self, record: Record | None, holder: str, duration_s: float) -> Record:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        content = msgspec.json.encode(render_lease(self._place, record, holder, duration_s, now))
        if record is None:
            return decode_lease(self._api.send(self._folder(), Body("POST", content)))
        return decode_lease(self._api.send(f"{self._folder()}/{self._place[1]}", Body("PUT", content)))

    def _folder(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self._place[0]}/leases"
