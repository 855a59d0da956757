"""EFFECT: one thread that serves every health-check port, however many Services have one.

An Observer: a commit says which ports are wanted and on which addresses. The thread waits in one epoll for commits,
connections and requests.
"""

import os
import queue
import resource
import selectors
import socket
import threading
import time
from collections.abc import Callable
from typing import cast

import structlog

from endpointslice.types import IP, NodeName
from proxy.commits import Commit
from proxy.healthcheck.answers import MAX_REQUEST_BYTES, has_request, render_answer
from proxy.healthcheck.checks import Check, Checks
from proxy.healthcheck.listeners import At, Listeners
from proxy.notices import Tell

log = structlog.get_logger()

RETRY_S = 5.0  # until a port that could not be opened is tried again, if no commit comes before
REQUEST_S = 5.0  # for a whole request; who is slower is cut off
MAX_CONNECTIONS = 256  # at once; one more cuts off the oldest
_ACCEPTS = 64  # connections taken in a row before others have their turn
_PIECE_BYTES = 4096


class _Connection:
    """A request on its way."""

    def __init__(self, port: int, until_s: float) -> None:
        self.port = port
        self.until_s = until_s
        self.received = b""
        self.answered = False


class HealthCheckServer:
    """Answers health checks of Services from `start` to the end of the process, or `stop`."""

    def __init__(self, node: NodeName, healthy: Callable[[], bool], tell: Tell) -> None:
        self._healthy = healthy
        self._commits: queue.SimpleQueue[Commit | None] = queue.SimpleQueue()  # None: stop
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._checks = Checks(node)
        self._by_port: dict[int, Check] = {}
        self._addresses: frozenset[IP] = frozenset()
        self._listeners = Listeners(self._selector, tell)
        self._connections: dict[socket.socket, _Connection] = {}  # the oldest first
        self._retry_s = float("inf")
        self._thread = threading.Thread(target=self._run, name="health-checks", daemon=True)

    def start(self) -> None:
        """Start the thread; each port takes a file descriptor an address, so all that may be had are allowed."""
        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self._thread.start()

    def committed(self, commit: Commit) -> None:
        """Called by the loop."""
        self._commits.put(commit)
        os.eventfd_write(self._wake, 1)

    def stop(self) -> None:
        """Close every port and end the thread."""
        self._commits.put(None)
        os.eventfd_write(self._wake, 1)
        self._thread.join()

    def _run(self) -> None:
        while True:
            for key, _events in self._selector.select(self._wait_s()):
                if isinstance(key.data, At):
                    self._accept(cast("socket.socket", key.fileobj), key.data.port)
                elif isinstance(key.data, _Connection):
                    self._read(cast("socket.socket", key.fileobj), key.data)
                elif not self._take_commits():
                    self._close()
                    return
            now_s = time.monotonic()
            if now_s >= self._retry_s:
                self._listen()
            for late in [one for one, state in self._connections.items() if state.until_s <= now_s]:
                self._end(late)

    def _wait_s(self) -> float | None:
        oldest = next(iter(self._connections.values()), None)
        until_s = min(self._retry_s, oldest.until_s if oldest is not None else self._retry_s)
        return None if until_s == float("inf") else max(0.0, until_s - time.monotonic())

    def _take_commits(self) -> bool:
        """Every commit that is there, then the sockets; False when it is time to stop."""
        os.eventfd_read(self._wake)
        differs = self._listeners.incomplete
        while not self._commits.empty():
            commit = self._commits.get()
            if commit is None:
                return False
            differs |= self._checks.update(commit.snapshot, commit.touched)
            differs |= self._addresses != commit.node_addresses
            self._addresses = commit.node_addresses
        if differs:
            self._by_port = dict(self._checks.by_port())
            self._listen()
        return True

    def _listen(self) -> None:
        self._listeners.replace(self._by_port, self._addresses)
        self._retry_s = time.monotonic() + RETRY_S if self._listeners.incomplete else float("inf")

    def _accept(self, listener: socket.socket, port: int) -> None:
        if listener.fileno() < 0:
            return  # closed by a commit that came in the same turn
        for _ in range(_ACCEPTS):
            try:
                connection, _peer = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:  # no file descriptor left, or the peer is gone already
                log.warning("health_check_unaccepted", port=port, why=error.strerror)
                self._end_oldest()
                return
            connection.setblocking(False)  # noqa: FBT003
            if len(self._connections) >= MAX_CONNECTIONS:
                self._end_oldest()
            state = self._connections[connection] = _Connection(port, time.monotonic() + REQUEST_S)
            self._selector.register(connection, selectors.EVENT_READ, state)

    def _read(self, connection: socket.socket, state: _Connection) -> None:
        """Take what has come; answer a whole request; after that wait for the peer to close, lest it see a reset."""
        if connection not in self._connections:
            return  # cut off in the same turn
        try:
            piece = connection.recv(_PIECE_BYTES)
            if not piece:
                self._end(connection)
            elif not state.answered:
                self._take_piece(connection, state, piece)
        except BlockingIOError:
            return
        except OSError:
            self._end(connection)

    def _take_piece(self, connection: socket.socket, state: _Connection, piece: bytes) -> None:
        state.received += piece
        check = self._by_port.get(state.port)
        if check is None or len(state.received) > MAX_REQUEST_BYTES:
            self._end(connection)
        elif has_request(state.received):
            # A new socket's send buffer takes far more than one answer.
            connection.send(render_answer(check, state.received, healthy=self._healthy()))
            connection.shutdown(socket.SHUT_WR)
            state.answered = True
            state.received = b""

    def _end_oldest(self) -> None:
        oldest = next(iter(self._connections), None)
        if oldest is not None:
            self._end(oldest)

    def _end(self, connection: socket.socket) -> None:
        del self._connections[connection]
        self._selector.unregister(connection)
        connection.close()

    def _close(self) -> None:
        self._listeners.close()
        for connection in [*self._connections]:
            self._end(connection)
        self._selector.close()
        os.close(self._wake)
