"""EFFECT: sends what this node owns to its proxy, from a thread of its own: the announcer's loop waits for nobody."""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import structlog

from proxy.announcer.ownership import Ownership, pack_ownership

log = structlog.get_logger()

GATHER_S = 0.1  # what changes within so long is told together
DOUBT_S = 1.0  # how often conflicts are looked at, which begin and end by time alone


class OwnershipSender:
    """Tells each proxy that connects everything once, and then again whatever has changed."""

    def __init__(self, look: Callable[[], Ownership], doubts: Callable[[], bool]) -> None:
        """`look`: what there is to tell, for any thread; `doubts`: whether time alone may change it."""
        self._look = look
        self._doubts = doubts
        self._news = threading.Event()
        self._lock = threading.Lock()  # guards the next two, between this thread and the feed's
        self._sock: socket.socket | None = None
        self._sent: Ownership | None = None  # over this socket
        self._stopped = False

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._run, name="ownership", daemon=True).start()

    def stop(self) -> None:
        """Tell nothing more: another process goes on."""
        self._stopped = True

    def wake(self) -> None:
        """Something may have changed."""
        self._news.set()

    def connected(self, sock: socket.socket | None) -> None:
        """A proxy is there; None: no more."""
        with self._lock:
            self._sock, self._sent = sock, None
        self._news.set()

    def _run(self) -> None:
        while not self._stopped:
            self._news.wait(DOUBT_S if self._doubts() else None)
            time.sleep(GATHER_S)
            self._news.clear()
            self._send(self._look())

    def _send(self, ownership: Ownership) -> None:
        with self._lock:
            sock, known = self._sock, self._sent
        if sock is None or ownership == known or self._stopped:
            return
        try:
            sock.sendall(pack_ownership(ownership))
        except OSError as error:
            log.info("ownership_untold", why=str(error))
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)  # the feed's thread connects anew
            return
        with self._lock:
            if self._sock is sock:
                self._sent = ownership
