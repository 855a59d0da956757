"""EFFECT: the control socket, by which `closeby dump` asks a running daemon; and the lock that lets one daemon run.

The socket's mode is 0600: what the daemon read from the API is for root only. Each connection gets the dump.
"""

import fcntl
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

import structlog

log = structlog.get_logger()

READ_S = 10.0  # how long a client waits for the dump
_CHUNK_BYTES = 1 << 16


class AlreadyRunningError(Exception):
    """Another daemon holds the lock beside the socket."""


def hold_lock(path: Path) -> IO[str]:
    """The open lock file beside the socket, held until the process ends; AlreadyRunningError if it is taken."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    lock = path.with_name(path.name + ".lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise AlreadyRunningError(f"another closeby runs here: it holds {path}.lock") from error
    return lock


def serve_control(path: Path, dump: Callable[[], bytes]) -> socket.socket:
    """A listening Unix socket, served by a thread; the caller holds the lock, so a file in its place is left over."""
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        server.bind(str(path))
    finally:
        os.umask(mask)
    server.listen()
    threading.Thread(target=_serve, args=(server, dump), name="control", daemon=True).start()
    return server


def _serve(server: socket.socket, dump: Callable[[], bytes]) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return  # closed: the daemon stops
        with connection:
            connection.settimeout(READ_S)
            try:
                connection.sendall(dump())
            except OSError as error:
                log.info("dump_cut", why=str(error))


def read_dump(path: Path) -> bytes:
    """What the daemon behind the socket sends; OSError if there is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(READ_S)
        client.connect(str(path))
        parts: list[bytes] = []
        while part := client.recv(_CHUNK_BYTES):
            parts.append(part)
        return b"".join(parts)
