"""EFFECT: the announcer's own Unix socket, by which people ask and command it. Mode 0600: for root only.

One request a connection: a line of JSON, and the answer until the end.
"""

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer
from typing import Literal

import msgspec

from endpointslice.types import IP, NodeName
from proxy.announcer.status import Status

ANSWER_S = 10.0
_LONGEST = 1 << 16  # bytes of a request


class Request(msgspec.Struct, frozen=True):
    """What is asked. `drain`, `undrain` and `move` also answer with the status; `state` and `hand-over` with the state.

    After `hand-over` the announcer is silent for good: who asked goes on in its place.
    """

    command: Literal["status", "drain", "undrain", "move", "state", "hand-over"]
    without: NodeName = NodeName("")
    vip: IP = IP("")  # of `move`
    to: NodeName = NodeName("")


Answer = Callable[[Request], bytes]


class ControlServer(ThreadingUnixStreamServer):
    """It leaves at its end what another process has put in its place."""

    daemon_threads = True

    def server_bind(self) -> None:
        """Know one's own file again."""
        super().server_bind()
        self._own = self._path.stat()

    def remove(self) -> None:
        """The file, if it is still this server's: a process that goes on in this one's place has another there."""
        with suppress(FileNotFoundError):
            if os.path.samestat(self._own, self._path.stat()):
                self._path.unlink()

    @property
    def _path(self) -> Path:
        return Path(str(self.server_address))


def serve_control(path: Path, answer: Answer) -> ControlServer:
    """A server, a thread a client; OSError if the socket can't be made."""

    class Handler(StreamRequestHandler):
        timeout = ANSWER_S

        def handle(self) -> None:
            try:
                request = msgspec.json.decode(self.rfile.readline(_LONGEST), type=Request)
                self.wfile.write(answer(request))
            except (OSError, TimeoutError, msgspec.DecodeError):
                return  # who asks nonsense, or left, gets nothing

    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    mask = os.umask(0o177)
    try:
        server = ControlServer(str(path), Handler)
    finally:
        os.umask(mask)
    threading.Thread(target=server.serve_forever, name="control", daemon=True).start()
    return server


def ask(path: Path, request: Request) -> Status:
    """What the announcer behind the socket answers; OSError if there is none."""
    try:
        return msgspec.json.decode(ask_bytes(path, request), type=Status)
    except msgspec.DecodeError as error:
        raise ConnectionError("the announcer gave no answer") from error


def ask_bytes(path: Path, request: Request) -> bytes:
    """The same as it came; empty if the announcer doesn't know the question."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(ANSWER_S)
        client.connect(str(path))
        client.sendall(msgspec.json.encode(request) + b"\n")
        with client.makefile("rb") as answer:
            return answer.read()
