"""EFFECT: an HTTP server of both families, which clients that are slow, many or talk nonsense can't exhaust."""

import socket
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import structlog

from proxy.config import BindAddress

log = structlog.get_logger()

_LONGEST_S = 30.0  # a connection carries one request; a scrape of 10,000 Services takes a second
_MOST_CLIENTS = 64  # the oldest gives way to the next


class DualStackServer(ThreadingHTTPServer):
    """One socket for both families where no host is given; the host's only family where IPv6 is missing.

    Each connection has a thread until it is `longest_s` old or the oldest of more than `most_clients`.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128  # clients that wait to be accepted; beyond, one asks again after a second
    longest_s = _LONGEST_S
    most_clients = _MOST_CLIENTS

    def __init__(self, address: BindAddress, handler: type[BaseHTTPRequestHandler], *, shared: bool = False) -> None:
        """`shared`: another process of this user may serve the port, too."""
        wants_v6 = ":" in address.host or (address.host == "" and socket.has_dualstack_ipv6())
        self.address_family = socket.AF_INET6 if wants_v6 else socket.AF_INET
        self._both = address.host == "" and wants_v6
        self._lock = threading.Lock()  # the clients: the accepting thread against theirs
        self._clients: dict[socket.socket, float] = {}  # since when, the oldest first
        self.allow_reuse_port = shared
        super().__init__((address.host, address.port), handler)

    @property
    def clients(self) -> int:
        """Connections that are open."""
        return len(self._clients)

    def server_bind(self) -> None:
        """Bind, to both families at once where that was asked for."""
        if self._both:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as the base class's
        """Serve the connection in a thread, and end the oldest if there are too many."""
        with self._lock:
            if len(self._clients) >= self.most_clients:
                oldest = next(iter(self._clients))
                del self._clients[oldest]
                _end(oldest)
            self._clients[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401  # as the base class's
        """Close the connection."""
        with self._lock:
            self._clients.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End connections that are too old; called twice a second and after each new one."""
        now_s = time.monotonic()
        with self._lock:
            old = [client for client, since_s in self._clients.items() if now_s - since_s > self.longest_s]
            for client in old:
                del self._clients[client]
                _end(client)

    def handle_error(self, *_: object) -> None:
        """A client that went away is no news; anything else is told with its trace."""
        error = sys.exception()
        if not isinstance(error, OSError):
            log.error("http_answer_failed", exc_info=error)


def _end(client: socket.socket) -> None:
    """Its thread sees the end of the connection, and closes it."""
    with suppress(OSError):  # it may have ended by itself just now
        client.shutdown(socket.SHUT_RDWR)
