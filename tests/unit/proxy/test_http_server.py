"""The HTTP servers among clients that are slow, many, or talk nonsense."""

import errno
import http.client
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from proxy.config import BindAddress
from proxy.health import serve_health
from proxy.http_server import DualStackServer
from proxy.metrics_server import serve_metrics
from tests.fuzz_inputs import damaged
from tests.unit.proxy.test_health import GOOD
from tests.waiting import until

PATIENCE_S = 60.0
HEALTH, METRICS = "health", "metrics"
REQUESTS = [
    b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /proxyMode HTTP/1.0\r\n\r\n",
    b"HEAD /livez HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
    b"POST / HTTP/9.9\r\nContent-Length: -5\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET " + b"/" * 70_000 + b" HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00",
]


@pytest.fixture(scope="module", params=[HEALTH, METRICS])
def server(request: pytest.FixtureRequest) -> Iterator[DualStackServer]:
    place = BindAddress("127.0.0.1", 0)
    with serve_health(place, lambda: GOOD) if request.param == HEALTH else serve_metrics(place) as server:
        server.most_clients = 8
        yield server
        server.shutdown()


def connect(server: DualStackServer) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=PATIENCE_S)
    client.settimeout(PATIENCE_S)
    return client


def end_writing(client: socket.socket) -> None:
    """As shutdown(), but a connection that was reset meanwhile ends in the error that reading it would."""
    try:
        client.shutdown(socket.SHUT_WR)
    except OSError as error:
        if error.errno != errno.ENOTCONN:  # which Python doesn't count among the ConnectionErrors
            raise
        raise ConnectionResetError from error


def status(server: DualStackServer) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=PATIENCE_S)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status
    finally:
        connection.close()


@given(content=damaged(REQUESTS), ending=st.sampled_from(["waits", "leaves"]))
def test_any_request_is_answered_or_ended_and_the_next_one_served(
    server: DualStackServer, content: bytes, ending: str
) -> None:
    with capture_logs() as logs, connect(server) as client, suppress(ConnectionError):  # what it didn't read is reset
        client.sendall(content)
        if ending == "waits":
            end_writing(client)
            while client.recv(65536):
                pass

    assert status(server) == 200
    assert [log for log in logs if log["log_level"] == "error"] == []


def test_clients_that_say_nothing_give_way_to_one_that_asks(server: DualStackServer) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(connect(server)) for _client in range(40)]

        assert status(server) == 200
        assert server.clients <= 8
        assert silent[0].recv(1) == b""
    until(lambda: server.clients == 0)


def test_a_client_that_never_comes_to_an_end_is_ended(server: DualStackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "longest_s", 0.2)
    with connect(server) as client, suppress(ConnectionError):  # what it had no time to read is reset
        client.sendall(b"GET /healthz HTTP/1.1\r\n")

        assert client.recv(1) == b""
    until(lambda: server.clients == 0)
