"""EFFECT: follow one kind of object at the API server: a complete list, then every change, for ever.

`KindWatch.run` > `_list` and `_watch`, one worry each: starting over, one complete list, one connection.
What can fail fails as ApiError and never posts anything, so the last state stands while the server is away.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import NamedTuple

import msgspec
import structlog

from endpointslice.decode import DecodeError, decode_continue
from proxy.sources import KindStatus
from proxy.sources.server_version import Version, ask_version
from proxy.sources.sink import Sink
from proxy.sources.stream import After, LineError, LineSplitter, choose_after, next_delay
from proxy.sources.transport import ApiError, ApiServer, Stream

log = structlog.get_logger()

_SHORT_S = 1.0  # a watch that ends sooner, with nothing said, counts as a failure
_STEADY_S = 10.0  # a watch that stood longer was no failure: the back-off begins anew
_BAD_REQUEST = 400
_FORBIDDEN = 403
_NOT_FOUND = 404
_GONE = 410
_UNKNOWN_FIELD = "field label not supported"
_CHANCE = random.SystemRandom()  # spreads load; threads share no state of it with anybody


class Before(NamedTuple):
    """A label selector for servers that are older than some version."""

    version: Version
    label_selector: str


class Resource(NamedTuple):
    """One kind of object at the API server."""

    kind: str
    path: str
    label_selector: str = ""
    field_selector: str = ""
    page_limit: int = 500  # client-go's
    permission: str = ""  # what RBAC must allow, where we can do without; "": we can't
    is_custom: bool = False  # of a definition: a server that starts says 404 until it has read it
    before: Before | None = None  # None: `label_selector` for every server


def draw_delay(attempt: int) -> float:
    """Seconds to wait after that many failures in a row, drawn anew each time."""
    return next_delay(attempt, _CHANCE.random())


class Patience(NamedTuple):
    """How long to wait for what."""

    silence_s: float = 150.0  # a bookmark comes every minute (at 58 and 118 s, Kubernetes 1.36): two missed
    watch_s: tuple[int, int] = (300, 600)  # timeoutSeconds, drawn anew each time: not all nodes come back at once
    delay: Callable[[int], float] = draw_delay  # of failures in a row
    refusal_s: float = 3.0  # a server that starts refuses everybody until it has read its roles
    owner_s: float = 600.0  # until a pod's owner is asked for again: it may be gone, orphaned or adopted


PATIENT = Patience()


class Reunion:
    """Waits that end early once another kind has reached the server again; shared by one server's watches."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._told = 0

    def tell(self) -> None:
        """End every wait."""
        with self._condition:
            self._told += 1
            self._condition.notify_all()

    def wait(self, seconds: float, unless: threading.Event) -> None:
        """Returns after the seconds, when somebody tells, or at once if the event is set."""
        with self._condition:
            before = self._told
            self._condition.wait_for(lambda: self._told != before or unless.is_set(), seconds)


class KindWatch:
    """Follows one resource. Owns a thread from `start` to `stop`."""

    def __init__(
        self,
        api: ApiServer,
        resource: Resource,
        sink: Sink,
        patience: Patience = PATIENT,
        reunion: Reunion | None = None,
    ) -> None:
        self._api = api
        self._resource = resource
        self._sink = sink
        self._patience = patience
        self._reunion = reunion or Reunion()
        self._version = ""  # where to resume; "": list first
        self._label_selector = resource.label_selector  # the same from a list to the next
        self._attempt = 0  # failures in a row
        self._last_failure = 0  # its status
        self._stopping = threading.Event()
        self._stream: Stream | None = None
        self._connected_s: float | None = None  # since when the watch stands
        self._refused_s: float | None = None  # since when we may not read, before a first list
        self._told = ""  # the sort of failure that the log last told of; "": all is well
        self.status = KindStatus()  # replaced as a whole, so any thread may read it
        self._thread = threading.Thread(target=self._run, name=f"watch-{resource.kind}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; `join` waits for it."""
        self._stopping.set()
        self._reunion.tell()
        stream = self._stream
        if stream is not None:
            stream.shut()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if not self._version:
                    self._list()
                self._watch()
            except ApiError as error:
                if not self._stopping.is_set():
                    self._note_failure(error)
                    self._reunion.wait(self._patience.delay(self._attempt), unless=self._stopping)

    def _list(self) -> None:
        """Post one complete list. An expired continue token is a failure like any other: the list begins again."""
        started_s = time.monotonic()
        self._label_selector = self._choose_label_selector()
        try:
            taken = self._sink.take_pages(self._pages())
        except DecodeError as error:
            raise ApiError(0, f"not a list of {self._resource.kind}: {error}") from error
        self._note_complete()
        self._version = taken.resource_version
        took_s = round(time.monotonic() - started_s, 3)
        log.info("kind_listed", kind=self._resource.kind, objects=taken.objects, took_s=took_s)

    def _pages(self) -> Iterator[bytes]:
        """All pages, at least one. The next one is asked for before one is decoded: 9 ms for 500 slices."""
        body = self._get_page("")
        while True:
            token = decode_continue(body)
            following = self._ask_ahead(token) if token else None
            yield body
            if following is None:
                return
            body = following.result()

    def _ask_ahead(self, token: str) -> Future[bytes]:
        """The page that will come. An executor's thread would keep the process from ending while the server is slow."""
        answer: Future[bytes] = Future()

        def ask() -> None:
            try:
                answer.set_result(self._get_page(token))
            except ApiError as error:
                answer.set_exception(error)
            finally:
                answer.cancel()  # for an error that nobody expects: it is in the log, and the waiter ends as well

        threading.Thread(target=ask, name=f"page-{self._resource.kind}", daemon=True).start()
        return answer

    def _get_page(self, token: str) -> bytes:
        query = {"limit": str(self._resource.page_limit), **self._selectors()}
        return self._api.get(self._resource.path, query | ({"continue": token} if token else {}))

    def _watch(self) -> None:
        """Post changes until the stream ends. Returns to be called again; ApiError where something went wrong."""
        seconds = _CHANCE.randint(*self._patience.watch_s)
        query = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        query |= {"resourceVersion": self._version, **self._selectors()}
        started_s = time.monotonic()
        with self._api.open_stream(self._resource.path, query, self._patience.silence_s) as stream:
            self._stream = stream
            if self._stopping.is_set():  # `stop` may have looked before there was a stream to shut
                return
            self._note_contact()
            said_something = self._follow(stream)
        self._stream = None
        if not said_something and time.monotonic() - started_s < _SHORT_S:
            raise ApiError(0, "the watch ended at once")

    def _follow(self, stream: Stream) -> bool:
        """Post the changes of each piece as it arrives; whether there was any line at all."""
        splitter = LineSplitter()
        said_something = False
        for piece in stream:
            try:
                lines = splitter.feed(piece)
            except LineError as error:
                raise ApiError(0, str(error)) from error
            taken = self._sink.take_lines(lines)
            if taken.resource_version:
                self._version = taken.resource_version
            if taken.failure is not None:
                raise ApiError(*taken.failure)
            if lines:
                said_something = True
        return said_something

    def _note_complete(self) -> None:
        self.status = msgspec.structs.replace(self.status, complete=True)

    def _choose_label_selector(self) -> str:
        before = self._resource.before
        if before is not None and ask_version(self._api) < before.version:
            return before.label_selector
        return self._resource.label_selector

    def _selectors(self) -> dict[str, str]:
        selectors = {"labelSelector": self._label_selector, "fieldSelector": self._resource.field_selector}
        return {name: selector for name, selector in selectors.items() if selector}

    def _note_contact(self) -> None:
        self._connected_s = time.monotonic()
        self.status = msgspec.structs.replace(self.status, connected=True, error="")
        if self._told:
            log.info("watch_regained", kind=self._resource.kind, server=self._api.host)
            self._told = ""
            self._reunion.tell()

    def _note_failure(self, error: ApiError) -> None:
        """Decide how to go on after a failure, and tell of it if it isn't of the sort that we last told of."""
        self._stream = None
        connected_s = self._connected_s
        stood = connected_s is not None and time.monotonic() - connected_s > _STEADY_S
        # A server that says Gone is back: the failures before were of another sort, and the list should come soon.
        back = error.status == _GONE != self._last_failure
        self._attempt = 1 if stood or back else self._attempt + 1
        self._last_failure = error.status
        self._connected_s = None
        self.status = msgspec.structs.replace(self.status, connected=False, error=str(error))
        if choose_after(error.status, error.reason, silent=error.silent) is After.RELIST:
            self._version = ""
        if self._do_without(error):
            return
        facts = {"kind": self._resource.kind, "server": self._api.host, "error": str(error)}
        # A kind in which nothing happens is silent too, where etcd tells the server of no progress (kubeadm's does).
        if error.status == _GONE or (error.silent and connected_s is not None):
            log.info("watch_expired", **facts)
        elif self._told != f"lost {error.status}":
            self._told = f"lost {error.status}"
            log.warning("watch_lost", **facts)
            if error.status == 0 and not self.status.complete and (advice := self._api.take_advice()):
                log.error("api_server_unreachable", server=self._api.host, advice=advice)

    def _do_without(self, error: ApiError) -> bool:
        """Whether we can go on without what was refused: an optional kind, or a selector that's news to the server."""
        resource = self._resource
        if error.status == _BAD_REQUEST and resource.field_selector and _UNKNOWN_FIELD in error.reason:
            # Before Kubernetes 1.32 or so; the decoder leaves headless Services out as well.
            log.info("field_selector_dropped", kind=resource.kind, selector=resource.field_selector)
            self._resource = resource._replace(field_selector="")
            return True
        if not resource.permission or error.status not in {_FORBIDDEN, _NOT_FOUND}:
            return False
        if not self.status.complete:  # a kind that was readable once keeps its last state
            now_s = time.monotonic()
            self._refused_s = now_s if self._refused_s is None else self._refused_s
            if now_s - self._refused_s < self._patience.refusal_s:
                if error.status == _FORBIDDEN:
                    return False
                if resource.is_custom:
                    return True
            self._sink.take_nothing()
            self._note_complete()
        if self._told != f"refused {error.status}":
            self._told = f"refused {error.status}"
            log.warning("kind_refused", kind=resource.kind, needs=resource.permission, error=str(error))
        return True
