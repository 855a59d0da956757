"""The HTTP answer of a health-check port, with kube-proxy's codes, headers and body. Pure."""

import json

from proxy.healthcheck.checks import Check

MAX_REQUEST_BYTES = 8192

_REASONS = {200: "OK", 503: "Service Unavailable"}


def has_request(received: bytes) -> bool:
    """Whether a request's head has come to its end; a body is never asked for."""
    return b"\r\n\r\n" in received or b"\n\n" in received


def render_answer(check: Check, request: bytes, *, healthy: bool) -> bytes:
    """200 if this node has a ready endpoint and its proxy is healthy, else 503; on any path, for any method.

    The weight is what balancers may share connections by. The connection ends with the answer.
    """
    namespace, _slash, name = check.service.partition("/")
    said = {
        "service": {"namespace": namespace, "name": name},
        "localEndpoints": check.ready,
        "serviceProxyHealthy": healthy,
    }
    body = json.dumps(said, indent="\t").encode()
    code = 200 if check.ready and healthy else 503
    head = (
        f"HTTP/1.1 {code} {_REASONS[code]}\r\n"
        "Content-Type: application/json\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        f"X-Load-Balancing-Endpoint-Weight: {check.ready}\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (b"" if request.startswith(b"HEAD ") else body)
