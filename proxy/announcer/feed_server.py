"""EFFECT, in the proxy's process: tells announcers on this node what the kernel serves. Mode 0600: for root only."""

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingUnixStreamServer

import structlog

from endpointslice.snapshot import Snapshot
from endpointslice.types import IP, Kind, NodeName
from proxy.announcer.feed_frames import ALIVE_S, Alive, Frame, pack_frame, split_change
from proxy.announcer.served import Served, list_served
from proxy.commits import Commit
from proxy.sources import KindStatus

log = structlog.get_logger()

_SEND_S = 10.0  # a reader that takes nothing for so long is given up

Status = Callable[[], Mapping[Kind, KindStatus]]


class Feed:
    """An Observer: keeps what the last commit serves, and sends it to whoever is connected."""

    def __init__(self, path: Path, node: NodeName, status: Status) -> None:
        self._path = path
        self._node = node
        self._status = status
        self._changed = threading.Condition()  # guards the next three, between the loop's thread and the readers'
        self._snapshot: Snapshot | None = None  # None: nothing was committed yet
        self._version = 0
        self._served: tuple[int, Mapping[IP, Served]] = (0, {})
        self._fresh_s = time.monotonic()
        self._server: ThreadingUnixStreamServer | None = None  # None: not started, or closed

    def committed(self, commit: Commit) -> None:
        """Note it; readers compute what it means."""
        with self._changed:
            self._snapshot = commit.snapshot
            self._version += 1
            self._changed.notify_all()

    def start(self) -> None:
        """Listen; OSError if the socket can't be made."""
        feed = self

        class Handler(BaseRequestHandler):
            def handle(self) -> None:
                self.request.settimeout(_SEND_S)
                feed.tell(self.request)

        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        self._path.unlink(missing_ok=True)
        mask = os.umask(0o177)
        try:
            server = self._server = _Server(str(self._path), Handler)
        finally:
            os.umask(mask)
        threading.Thread(target=server.serve_forever, name="announcer-feed", daemon=True).start()

    def close(self) -> None:
        """Listen no more; readers are left within a second."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            self._path.unlink(missing_ok=True)

    def tell(self, reader: socket.socket) -> None:
        """Send to one reader until it goes away."""
        version, known = 0, None
        try:
            while self._server is not None:
                version, served = self._wait(version)
                age_s = self._age_s()
                frames: list[Frame] = [] if served is None else [*split_change(known, served, age_s)]
                if not frames and known is not None:
                    frames = [Alive(age_s)]
                for frame in frames:
                    reader.sendall(pack_frame(frame))
                known = known if served is None else served
        except OSError as error:
            log.info("announcer_left", why=str(error))

    def _wait(self, version: int) -> tuple[int, Mapping[IP, Served] | None]:
        """What is served, if that may have changed since that version; else None after a second."""
        with self._changed:
            if self._version == version:
                self._changed.wait(ALIVE_S)
            if self._version == version or self._snapshot is None:
                return version, None
            if self._served[0] != self._version:
                self._served = self._version, list_served(self._snapshot, self._node)
            return self._served

    def _age_s(self) -> float:
        """How long we have been without a word from the API; 0 while all kinds are connected."""
        now_s = time.monotonic()
        if all(kind.connected for kind in self._status().values()):
            self._fresh_s = now_s
        return now_s - self._fresh_s


class _Server(ThreadingUnixStreamServer):
    daemon_threads = True
