"""EFFECT: the metrics server, 127.0.0.1:10249 by default: the pages of kube-proxy's that tools read."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

from prometheus_client import REGISTRY
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from proxy.config import BindAddress
from proxy.http_server import DualStackServer

_SLIS = ["process_start_time_seconds"]  # all that kube-proxy has on that page
PROXY_MODE = b"nftables"  # tools that ask kube-proxy for its mode look for this word


class _Handler(BaseHTTPRequestHandler):
    def is_alive(self) -> bool:
        return True

    def do_GET(self) -> None:
        match self.path.partition("?")[0]:
            case "/metrics":
                self._answer(200, CONTENT_TYPE_LATEST, generate_latest(REGISTRY))
            case "/metrics/slis":
                self._answer(200, CONTENT_TYPE_LATEST, generate_latest(REGISTRY.restricted_registry(_SLIS)))
            case "/healthz":
                alive = self.is_alive()
                self._answer(200 if alive else 503, "text/plain", b"ok" if alive else b"stuck\n")
            case "/proxyMode":
                self._answer(200, "text/plain", PROXY_MODE)
            case path:
                self._answer(
                    404, "text/plain", f"{path}: no such page; try /metrics, /healthz or /proxyMode\n".encode()
                )

    def _answer(self, code: int, kind: str, data: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """No line a scrape."""


def serve_metrics(
    address: BindAddress, is_alive: Callable[[], bool] = lambda: True, *, shared: bool = False
) -> DualStackServer:
    """A running server, in a thread of its own; OSError if the address can't be bound.

    /healthz is 503 while `is_alive` says no. `shared`: the process that follows may bind it, too, before this one ends.
    """

    class Handler(_Handler):
        def is_alive(self) -> bool:
            return is_alive()

    server = DualStackServer(address, Handler, shared=shared)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server
