"""EFFECT: /healthz, /livez and /readyz, with kube-proxy's body and codes.

Unhealthy is a proxy whose oldest change has waited longer than twice the sync period for the kernel; an idle one and
one that is starting are healthy. /readyz, which kube-proxy lacks, answers 200 once the first sync is done.
"""

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple

from prometheus_client import Counter

from proxy.config import BindAddress
from proxy.http_server import DualStackServer

HEALTHZ_TOTAL = Counter("kubeproxy_proxy_healthz", "Answers of /healthz by HTTP code.", ["code"])
LIVEZ_TOTAL = Counter("kubeproxy_proxy_livez", "Answers of /livez by HTTP code.", ["code"])


class Health(NamedTuple):
    """What the loop says of itself."""

    healthy: bool
    ready: bool  # the first sync is done
    node_eligible: bool  # the Node isn't being deleted or drained
    last_updated: datetime
    families: tuple[str, ...]


def render_health(health: Health, now: datetime, *, with_node: bool) -> tuple[int, dict[str, object]]:
    """HTTP code and body of /healthz (`with_node`) or /livez, with kube-proxy's keys."""
    good = health.healthy and (health.node_eligible or not with_node)
    updated = (now if health.healthy else health.last_updated).isoformat()
    body: dict[str, object] = {"lastUpdated": updated, "currentTime": now.isoformat()}
    if with_node:
        body["nodeEligible"] = health.node_eligible
    body["healthy"] = health.healthy
    body["status"] = {name: {"lastUpdated": updated, "healthy": health.healthy} for name in health.families}
    return (200 if good else 503), body


def serve_health(address: BindAddress, health: Callable[[], Health]) -> DualStackServer:
    """A running server, in a thread of its own; OSError if the address can't be bound."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            now = datetime.now(UTC)
            path = self.path.partition("?")[0]
            if path == "/readyz":
                ready = health().ready
                self._answer(200 if ready else 503, {"ready": ready})
            elif path in {"/healthz", "/livez"}:
                code, body = render_health(health(), now, with_node=path == "/healthz")
                (HEALTHZ_TOTAL if path == "/healthz" else LIVEZ_TOTAL).labels(str(code)).inc()
                self._answer(code, body)
            else:
                self._answer(404, {"error": f"{path}: no such page; try /healthz, /livez or /readyz"})

        def _answer(self, code: int, body: dict[str, object]) -> None:
            data = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """No line a probe."""

    server = DualStackServer(address, Handler)
    threading.Thread(target=server.serve_forever, name="healthz", daemon=True).start()
    return server
