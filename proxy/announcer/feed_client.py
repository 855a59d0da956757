"""EFFECT, in the announcer's process: what the proxy on this node serves, from a thread of its own."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import structlog

from proxy.announcer.feed_frames import (
    SILENT_S,
    BrokenFrameError,
    Part,
    apply_part,
    parse_content,
)
from proxy.announcer.feed_socket import read_content
from proxy.announcer.served import Said

log = structlog.get_logger()

RETRY_S = 0.5


class News(NamedTuple):
    """From the proxy; `said` None: what it told before stands."""

    said: Said | None
    age_s: float


class Gone(NamedTuple):
    """The proxy doesn't answer."""

    why: str


class FeedClient:
    """Connects again and again; a table counts once it is whole, so a proxy that dies in between changes nothing."""

    def __init__(
        self,
        path: Path,
        post: Callable[[News | Gone], None],
        connected: Callable[[socket.socket | None], None] = lambda _sock: None,
    ) -> None:
        """`connected` is called with each new connection, and with None when it is gone."""
        self._path = path
        self._post = post
        self._connected = connected
        self._stopped = threading.Event()
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; nothing is posted any more once this returns."""
        self._stopped.set()
        sock = self._socket
        if sock is not None:
            with suppress(OSError):  # it may have ended by itself just now
                sock.shutdown(socket.SHUT_RDWR)
        if self._thread.ident is not None:  # it was started
            self._thread.join(SILENT_S)

    def _run(self) -> None:
        told = ""
        while not self._stopped.is_set():
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                    self._socket = sock
                    sock.settimeout(SILENT_S)
                    sock.connect(str(self._path))
                    log.info("proxy_connected", socket=str(self._path))
                    told = ""
                    self._connected(sock)
                    try:
                        self._listen(sock)
                    finally:
                        self._connected(None)
            except (OSError, EOFError, BrokenFrameError) as error:
                why = str(error) or type(error).__name__
                if why != told and not self._stopped.is_set():
                    log.warning("proxy_gone", why=why, socket=str(self._path))
                    self._post(Gone(why))
                told = why
            self._stopped.wait(RETRY_S)

    def _listen(self, sock: socket.socket) -> None:
        known, whole = Said({}), False
        while not self._stopped.is_set():
            frame = parse_content(read_content(sock))
            if isinstance(frame, Part):
                known = apply_part(known, frame)
                if frame.last:
                    whole = True
                    self._post(News(known, frame.age_s))
            elif whole:  # of a proxy that only lists yet, what its predecessor told is no fresher for that
                self._post(News(None, frame.age_s))
