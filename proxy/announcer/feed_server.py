"""EFFECT, in the proxy's process: tells announcers on this node what the kernel serves. Mode 0600: for root only."""

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingUnixStreamServer

import structlog

from endpointslice.snapshot import Snapshot
from endpointslice.types import Kind, NodeName
from proxy.announcer.around import Surveyed, describe_around, make_advertising
from proxy.announcer.feed_frames import ALIVE_S, Alive, BrokenFrameError, Frame, pack_frame, split_change
from proxy.announcer.feed_socket import read_content
from proxy.announcer.ownership import Ownership, parse_ownership
from proxy.announcer.readiness import Readiness, watch_readiness
from proxy.announcer.served import Said, know_own_node, list_served
from proxy.commits import Commit
from proxy.sources import KindStatus

log = structlog.get_logger()

_SEND_S = 10.0  # a reader that takes nothing for so long is given up
_LEAVE_S = 5.0  # far more than the threads of connections need that were shut

Status = Callable[[], Mapping[Kind, KindStatus]]
Heard = Callable[[Ownership], None]


def ignore(_ownership: Ownership) -> None:
    """For a proxy without an API server to tell."""


class Feed:
    """An Observer: keeps what the last commit serves, and sends it to whoever is connected."""

    def __init__(
        self, path: Path, node: NodeName, status: Status, heard: Heard = ignore, *, surveys: bool = False
    ) -> None:
        """`heard` is called with what an announcer owns, from a thread of its connection.

        `surveys`: nothing is told before `look_around` is called.
        """
        self._heard = heard
        self._path = path
        self._node = node
        self._status = status
        self._surveys = surveys
        self._changed = threading.Condition()  # guards the next ones, between the loop's thread and the readers'
        self._snapshot: Snapshot | None = None  # None: nothing was committed yet
        self._version = 0
        self._told = 0, Said({})  # of which version
        self._surveyed = Surveyed()
        self._connected = False  # whether changes of Nodes would reach us
        self._readiness = Readiness()
        self._fresh_s = time.monotonic()
        self._server: ThreadingUnixStreamServer | None = None  # None: not started, or closed
        self._readers: set[socket.socket] = set()  # guarded as well

    def committed(self, commit: Commit) -> None:
        """Note it; readers compute what it means."""
        with self._changed:
            self._snapshot = commit.snapshot
            self._version += 1
            self._changed.notify_all()

    def look_around(self, surveyed: Surveyed) -> None:
        """Note what else the API has, once all of it was listed."""
        with self._changed:
            self._surveys = False
            self._surveyed = surveyed
            self._version += 1
            self._changed.notify_all()

    def note_connection(self, connected: bool) -> None:  # noqa: FBT001  # one fact, one argument
        """Whether changes of Nodes would reach us."""
        with self._changed:
            self._connected = connected

    def start(self) -> None:
        """Listen; OSError if the socket can't be made."""
        feed = self

        class Handler(BaseRequestHandler):
            def handle(self) -> None:
                self.request.settimeout(_SEND_S)
                feed.converse(self.request)

        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        self._path.unlink(missing_ok=True)
        mask = os.umask(0o177)
        try:
            server = self._server = _Server(str(self._path), Handler)
        finally:
            os.umask(mask)
        threading.Thread(target=server.serve_forever, name="announcer-feed", daemon=True).start()

    def close(self) -> None:
        """Listen no more, and leave all readers: nothing is told, heard or logged once this returns."""
        server, self._server = self._server, None
        if server is None:
            return
        server.shutdown()
        server.server_close()
        self._path.unlink(missing_ok=True)
        with self._changed:
            for reader in self._readers:
                _shut(reader)
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._readers, _LEAVE_S)

    def converse(self, reader: socket.socket) -> None:
        """Tell it and hear it, until it goes away or we close."""
        hearing = threading.Thread(target=self.hear, args=(reader,), name="announcer-heard", daemon=True)
        with self._changed:
            self._readers.add(reader)
        hearing.start()
        self.tell(reader)
        _shut(reader)
        hearing.join()
        with self._changed:
            self._readers.remove(reader)
            self._changed.notify_all()

    def tell(self, reader: socket.socket) -> None:
        """Send to one reader until it goes away."""
        version = 0
        known: Said | None = None
        try:
            while self._server is not None:
                version, told = self._wait(version)
                age_s = self._age_s()
                frames: list[Frame] = [] if told is None else [*split_change(known, told, age_s)]
                for frame in frames or [Alive(age_s)]:
                    reader.sendall(pack_frame(frame))
                known = known if told is None else told
        except OSError as error:
            if self._server is not None:
                log.info("announcer_left", why=str(error))

    def hear(self, announcer: socket.socket) -> None:
        """Take what it says until it goes away; one that says nothing is as welcome."""
        try:
            while self._server is not None:
                try:
                    announcer.recv(1, socket.MSG_PEEK)
                except TimeoutError:
                    continue
                self._heard(parse_ownership(read_content(announcer)))
        except (OSError, EOFError, BrokenFrameError) as error:
            if self._server is not None:
                log.info("announcer_unheard", why=str(error))

    def _wait(self, version: int) -> tuple[int, Said | None]:
        """What there is to tell, if that may have changed since that version; else None after a second."""
        with self._changed:
            if self._version == version:
                self._changed.wait(ALIVE_S)
            self._watch_readiness()
            if self._version == version or self._snapshot is None or self._surveys:
                return version, None
            if self._told[0] != self._version:
                self._told = self._version, self._tell_now(self._snapshot)
            return self._told

    def _watch_readiness(self) -> None:
        """Time alone may make a Node count as NotReady."""
        before = self._readiness
        nodes = self._surveyed.nodes.values()
        self._readiness = watch_readiness(before, nodes, time.monotonic(), connected=self._connected)
        if self._readiness.lost != before.lost:
            log.info("nodes_not_ready", nodes=sorted(self._readiness.lost))
            self._version += 1

    def _tell_now(self, snapshot: Snapshot) -> Said:
        surveyed = self._surveyed
        if surveyed.state.objects:
            advertising = make_advertising(surveyed)
            served = list_served(snapshot, advertising)
            reaches = (one.reach for one in served.values())
            return Said(served, describe_around(surveyed, self._readiness, advertising, reaches))
        return Said(list_served(snapshot), know_own_node(snapshot, self._node))

    def _age_s(self) -> float:
        """How long we have been without a word from the API; 0 while all kinds are connected."""
        now_s = time.monotonic()
        if all(kind.connected for kind in self._status().values()):
            self._fresh_s = now_s
        return now_s - self._fresh_s


def _shut(reader: socket.socket) -> None:
    """Whoever waits for it or writes to it does so no more."""
    with suppress(OSError):  # it may have gone by itself just now
        reader.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingUnixStreamServer):
    daemon_threads = True
