"""The metrics server's pages."""

import errno
import http.client
from collections.abc import Iterator

import pytest

from proxy import metrics
from proxy.config import BindAddress
from proxy.metrics_server import serve_metrics


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    metrics.LOOP_ERRORS.inc(0)
    server = serve_metrics(BindAddress("127.0.0.1", 0))
    yield int(server.server_address[1])
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "code", "content"),
    [
        pytest.param("/metrics", 200, b"# TYPE kubeproxy_sync_proxy_rules_duration_seconds histogram", id="metrics"),
        pytest.param("/metrics?name[]=x", 200, b"closeby_loop_errors_total", id="metrics with a query"),
        pytest.param("/metrics/slis", 200, b"process_start_time_seconds", id="the figures of kube-proxy's SLI page"),
        pytest.param("/healthz", 200, b"ok", id="healthz"),
        pytest.param("/proxyMode", 200, b"nftables", id="the mode, as tools ask kube-proxy for it"),
        pytest.param("/", 404, b"try /metrics, /healthz or /proxyMode", id="another page tells which there are"),
    ],
)
def test_pages(port: int, path: str, code: int, content: bytes) -> None:
    status, body, kind = get(port, path)

    assert status == code
    assert content in body
    assert kind.startswith("text/plain")


def get(port: int, path: str) -> tuple[int, bytes, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body, response.headers["Content-Type"]


def test_a_process_that_is_stuck_says_so() -> None:
    server = serve_metrics(BindAddress("127.0.0.1", 0), lambda: False)

    assert get(int(server.server_address[1]), "/healthz")[:2] == (503, b"stuck\n")

    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("shared", "taken"),
    [
        pytest.param(True, False, id="two that share a port, as in an update, both have it"),
        pytest.param(False, True, id="others are told that it is taken"),
    ],
)
def test_a_port_is_shared_where_both_say_so(*, shared: bool, taken: bool) -> None:
    first = serve_metrics(BindAddress("127.0.0.1", 0), shared=True)
    place = BindAddress("127.0.0.1", int(first.server_address[1]))
    servers, refused = [first], None
    try:
        servers.append(serve_metrics(place, shared=shared))
    except OSError as error:
        refused = error.errno
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()

    assert refused == (errno.EADDRINUSE if taken else None)
