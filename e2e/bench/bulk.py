"""EFFECT: many requests to the API server, fast: a few TLS connections, bodies encoded here, answers barely read."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import msgspec

from e2e.controlplane.api import Access, Object
from e2e.controlplane.netns import connect_in

CONNECTIONS = 8
_TIMEOUT_S = 60.0
_READ_BYTES = 65536
_LENGTH = b"content-length: "
MERGE_PATCH = "application/merge-patch+json"
_BRIEF = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"  # only the metadata of what was stored


class BulkError(Exception):
    """The server refused one of the requests, or broke off; the text is its answer."""


class Request(NamedTuple):
    """One request with a JSON body."""

    method: str
    path: str
    body: Object
    content_type: str = "application/json"


def send_all(
    access: Access,
    requests: Iterable[Request],
    done: Callable[[], None] = lambda: None,
    *,
    per_second: float | None = None,
) -> None:
    """All requests, in no certain order; `done` is called after each. Returns when all are answered with a 2xx.

    `per_second` holds them to an even pace; None: as fast as it goes. BulkError for the first that failed.
    """
    shared = _take_turns(requests, per_second)
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        running = [pool.submit(_work, access, shared, done) for _ in range(CONNECTIONS)]
        for future in running:
            future.result()


class Line:
    """One keep-alive connection, used by one thread."""

    def __init__(self, access: Access) -> None:
        context = ssl.create_default_context(cafile=str(access.ca_certificate))
        plain = connect_in(access.netns, (access.host, access.port), _TIMEOUT_S)
        self._socket = context.wrap_socket(plain, server_hostname=access.host)
        self._common = f"Host: {access.host}\r\nAuthorization: Bearer {access.token}\r\n".encode()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def send(self, request: Request) -> float:
        """Monotonic time at which the whole answer was here; BulkError if it wasn't a 2xx."""
        body = msgspec.json.encode(request.body)
        head = (
            f"{request.method} {request.path} HTTP/1.1\r\nAccept: {_BRIEF}\r\nContent-Type: {request.content_type}\r\n"
        )
        self._socket.sendall(b"%b%bContent-Length: %d\r\n\r\n%b" % (head.encode(), self._common, len(body), body))
        answer = self._read()
        if not answer.startswith(b"HTTP/1.1 2"):
            raise BulkError(f"{request.method} {request.path}: {answer.decode(errors='replace')[:600]}")
        return time.monotonic()

    def stream(self, path: str) -> Iterator[tuple[float, bytes]]:
        """The pieces of an endless answer, such as a watch's, each with the monotonic time at which it was here."""
        self._socket.sendall(f"GET {path} HTTP/1.1\r\n".encode() + self._common + b"\r\n")
        self._socket.settimeout(None)
        while piece := self._socket.recv(_READ_BYTES):
            yield time.monotonic(), piece

    def shut(self) -> None:
        """End a stream from another thread."""
        self._socket.shutdown(socket.SHUT_RDWR)

    def _read(self) -> bytes:
        answer = b""
        while not _is_whole(answer):
            piece = self._socket.recv(_READ_BYTES)
            if not piece:
                raise BulkError("the API server closed the connection")
            answer += piece
        return answer


def _is_whole(answer: bytes) -> bool:
    """Whether the answer to the one request under way is complete; a JSON body has no bare line ends in it."""
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = answer[:end].lower()
    if _LENGTH not in head:
        return answer.endswith(b"\r\n0\r\n\r\n")  # the last of the chunks that a longer answer comes in
    return len(answer) >= end + 4 + int(head.partition(_LENGTH)[2].partition(b"\r\n")[0])


def _take_turns(requests: Iterable[Request], per_second: float | None) -> Callable[[], Request | None]:
    """The next request for whoever asks, at its time; None: no more."""
    lock = threading.Lock()
    left: Iterator[Request] = iter(requests)
    due = time.monotonic()

    def take() -> Request | None:
        nonlocal due
        with lock:
            request = next(left, None)
            due += 1 / per_second if per_second else 0.0
            wait_s = due - time.monotonic() if per_second else 0.0
        if wait_s > 0:
            time.sleep(wait_s)
        return request

    return take


def _work(access: Access, take: Callable[[], Request | None], done: Callable[[], None]) -> None:
    line = Line(access)
    try:
        while (request := take()) is not None:
            line.send(request)
            done()
    finally:
        line.close()
