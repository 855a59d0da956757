"""EFFECT: the control socket, by which `closeby dump` asks a running daemon; and the lock that lets one daemon run.

The socket's mode is 0600: what the daemon read from the API is for root only. Each connection gets the dump.
"""

import fcntl
import os
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingUnixStreamServer
from typing import IO

import structlog

log = structlog.get_logger()

READ_S = 10.0  # how long a client waits for the dump
_CHUNK_BYTES = 1 << 16


class LockError(Exception):
    """The lock beside the socket can't be had."""


class AlreadyRunningError(LockError):
    """Another daemon has it."""


def hold_lock(path: Path) -> IO[str]:
    """The open lock file beside the socket, held until the process ends; LockError if it can't be had."""
    place = path.with_name(path.name + ".lock")
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        lock = place.open("w")
    except OSError as error:
        raise LockError(f"--control-socket: can't write {place}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise AlreadyRunningError(f"another closeby runs here: it holds {place}") from error
    return lock


def check_lock(path: Path) -> None:
    """AlreadyRunningError if a daemon holds the lock beside the socket; where no lock was made, none runs."""
    if path.with_name(path.name + ".lock").exists():
        hold_lock(path).close()


class _Server(ThreadingUnixStreamServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """The client gets nothing, and asks again; the trace is in the log."""
        log.error("dump_failed", exc_info=sys.exception())


def serve_control(path: Path, dump: Callable[[], bytes]) -> ThreadingUnixStreamServer:
    """A server on a Unix socket, a thread a client; the caller holds the lock, so a file in its place is left over."""

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            self.request.settimeout(READ_S)
            try:
                self.request.sendall(dump())
            except OSError as error:
                log.info("dump_cut", why=str(error))

    path.unlink(missing_ok=True)
    mask = os.umask(0o177)
    try:
        server = _Server(str(path), Handler)
    finally:
        os.umask(mask)
    threading.Thread(target=server.serve_forever, name="control", daemon=True).start()
    return server


def read_dump(path: Path) -> bytes:
    """What the daemon behind the socket sends; OSError if there is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(READ_S)
        client.connect(str(path))
        parts: list[bytes] = []
        while part := client.recv(_CHUNK_BYTES):
            parts.append(part)
        return b"".join(parts)
