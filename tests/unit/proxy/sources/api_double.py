"""A real HTTP server whose answers a test writes: what an API server may do and a healthy one hardly ever does."""

import json
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pytest

from endpointslice.decode import Changed, Listed

PATIENCE_S = 60.0
END = b""  # a piece: the stream ends as it should
CUT = None  # a piece: the connection breaks


class Request(NamedTuple):
    path: str
    query: dict[str, str]
    authorization: str
    body: bytes | None = None
    method: str = "GET"
    content_type: str = ""  # of the body

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query


class Answer(NamedTuple):
    pieces: Iterable[bytes | None]  # each is sent as one chunk, at once
    status: int = 200


def answer_json(body: object, status: int = 200) -> Answer:
    return Answer([json.dumps(body).encode()], status)


def answer_status(code: int, message: str) -> Answer:
    return answer_json({"kind": "Status", "code": code, "message": message}, code)


def answer_list(kind: str, items: Sequence[Any], version: str = "1", token: str = "") -> Answer:
    return answer_json(
        {"kind": f"{kind}List", "metadata": {"resourceVersion": version, "continue": token}, "items": items}
    )


def event(type_: str, item: object) -> bytes:
    return json.dumps({"type": type_, "object": item}).encode() + b"\n"


def service(name: str, *, version: str = "1", port: int = 80) -> dict[str, Any]:
    return {
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop", "resourceVersion": version},
        "spec": {"clusterIP": "10.96.0.7", "ports": [{"port": port}]},
    }


class Feed:
    """The pieces of a stream, given one by one by the test."""

    def __init__(self) -> None:
        self._pieces: queue.Queue[bytes | None] = queue.Queue()

    def give(self, *pieces: bytes | None) -> None:
        for piece in pieces:
            self._pieces.put(piece)

    def __iter__(self) -> Iterator[bytes | None]:
        while True:
            piece = self._pieces.get()
            yield piece
            if not piece:
                return


class ApiDouble:
    """Serves on a free port of the loopback; `answer` decides, and may be replaced at any time."""

    def __init__(self, answer: Callable[[Request], Answer]) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.feeds: list[Feed] = []
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                length = self.headers.get("Content-Length")
                body = self.rfile.read(int(length)) if length is not None else None
                request = Request(
                    parts.path,
                    dict(parse_qsl(parts.query)),
                    self.headers.get("Authorization", ""),
                    body,
                    self.command,
                    self.headers.get("Content-Type", ""),
                )
                double.requests.append(request)
                answer = double.answer(request)
                self.send_response(answer.status)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for piece in answer.pieces:
                    if piece is CUT:
                        self.close_connection = True
                        return
                    if piece:
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")

            do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 (http.server finds them by these names)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client may leave at any time
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def feed(self) -> Feed:
        """A stream that ends with the test at the latest."""
        self.feeds.append(Feed())
        return self.feeds[-1]

    def watches(self) -> list[Request]:
        return [request for request in self.requests if request.is_watch]

    def lists(self) -> list[Request]:
        return [request for request in self.requests if not request.is_watch]

    def close(self) -> None:
        for feed in self.feeds:
            feed.give(CUT)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(PATIENCE_S)

    def kubeconfig(self, path: Path, **user: object) -> Path:
        content = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "double", "user": "me"}}],
            "clusters": [{"name": "double", "cluster": {"server": self.url}}],
            "users": [{"name": "me", "user": user}],
        }
        path.write_text(json.dumps(content))  # JSON is YAML
        return path


class Posted:
    """A `Post` that remembers, and waits for what must come."""

    def __init__(self) -> None:
        self._batches: queue.Queue[Sequence[Changed | Listed]] = queue.Queue()

    def __call__(self, batch: Sequence[Changed | Listed]) -> None:
        self._batches.put(batch)

    def next(self) -> Sequence[Changed | Listed]:
        """The next batch; the test fails if none comes."""
        try:
            return self._batches.get(timeout=PATIENCE_S)
        except queue.Empty:
            pytest.fail(f"nothing was posted within {PATIENCE_S} s")

    def is_quiet(self, for_s: float) -> bool:
        """Whether nothing is posted in that time."""
        try:
            self._batches.get(timeout=for_s)
        except queue.Empty:
            return True
        return False
