"""The thread that answers health checks, asked over real connections on the loopback."""

import http.client
import json
import random
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec
import pytest

from endpointslice.snapshot import EMPTY, Changed, Snapshot, apply_events
from endpointslice.types import IP, Kind, NodeName, Service, TrafficPolicy
from proxy.commits import Commit
from proxy.health import Health
from proxy.healthcheck.server import HealthCheckServer
from proxy.notices import Notice
from tests.builders import a_slice, service, slice_endpoint
from tests.loop import metric, running
from tests.waiting import until

NODE = NodeName("n1")
LOOPBACK = frozenset({IP("127.0.0.1"), IP("::1")})
PATIENCE_S = 60.0


def free_port() -> int:
    """A port that nobody uses, below those that the kernel gives to clients: one of them could connect to itself."""
    while True:
        port = random.randrange(10_000, 30_000)
        with suppress(OSError), socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True):
            return port


def web(port: int, **fields: object) -> Service:
    local = {"type": "LoadBalancer", "external_traffic_policy": TrafficPolicy.LOCAL, "health_check_node_port": port}
    return service(**{**local, **fields})


def world(port: int, ready: int = 1) -> Snapshot:
    ends = [slice_endpoint(f"10.244.1.{n}", node=NODE) for n in range(1, ready + 1)]
    piece = a_slice(ends)
    changes = [Changed(Kind.SERVICE, "default/web", web(port)), Changed(Kind.ENDPOINT_SLICE, piece.name, piece)]
    return apply_events(EMPTY, changes)[0]


class Checked:
    """A running server; what it tells and how healthy the proxy is, as the test has it."""

    def __init__(self) -> None:
        self.healthy = True
        self.ask_loop: Callable[[], Health] | None = None
        self.told: list[Notice] = []
        self.server = HealthCheckServer(NODE, self._is_healthy, self.told.append)
        self.server.start()

    def _is_healthy(self) -> bool:
        return self.ask_loop().healthy if self.ask_loop is not None else self.healthy

    def commit(self, snapshot: Snapshot) -> None:
        self.server.committed(Commit(snapshot, None, LOOPBACK))


@pytest.fixture
def checked() -> Iterator[Checked]:
    made = Checked()
    yield made
    made.server.stop()


def listens(port: int, host: str = "127.0.0.1") -> bool:
    try:
        socket.create_connection((host, port), PATIENCE_S).close()
    except (ConnectionRefusedError, ConnectionResetError):  # reset: it closed in the middle of the handshake
        return False
    return True


def ask(port: int, path: str = "/", host: str = "127.0.0.1", method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_S)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def is_cut_off(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    ("ready", "healthy", "code"),
    [
        pytest.param(2, True, 200, id="endpoints here"),
        pytest.param(0, True, 503, id="none here"),
        pytest.param(2, False, 503, id="the proxy is stale: what it knows may be wrong"),
        pytest.param(0, False, 503, id="neither"),
    ],
)
def test_the_answer_is_kube_proxys(checked: Checked, *, ready: int, healthy: bool, code: int) -> None:
    port = free_port()
    checked.healthy = healthy
    checked.commit(world(port, ready))
    until(lambda: listens(port))

    status, headers, body = ask(port, "/any/path?at=all")

    assert status == code
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Load-Balancing-Endpoint-Weight"] == str(ready)
    assert json.loads(body) == {
        "service": {"namespace": "default", "name": "web"},
        "localEndpoints": ready,
        "serviceProxyHealthy": healthy,
    }


def test_a_proxy_whose_change_waits_too_long_says_no_and_yes_again_when_it_is_written(checked: Checked) -> None:
    port = free_port()
    with running(longest_retry_s=0.02) as loop:
        checked.server.committed(Commit(world(port), None, LOOPBACK))
        until(lambda: listens(port))
        loop.list_all(service())
        checked.ask_loop = loop.loop.health
        assert ask(port)[0] == 200

        loop.kernel.open.clear()
        loop.put(a_slice([slice_endpoint()]))
        loop.until(lambda: ask(port)[0] == 503)
        loop.kernel.open.set()

        loop.until(lambda: ask(port)[0] == 200)


def test_both_families_answer_and_a_head_request_gets_no_body(checked: Checked) -> None:
    port = free_port()
    checked.commit(world(port))
    until(lambda: listens(port) and listens(port, "::1"))

    assert ask(port, host="::1")[0] == 200
    assert ask(port, method="HEAD")[2] == b""
    assert ask(port, method="POST")[0] == 200


def test_a_port_moves_and_closes_with_its_service(checked: Checked) -> None:
    first = free_port()
    second = next(port for port in iter(free_port, None) if port != first)
    checked.commit(world(first))
    until(lambda: listens(first))
    checked.commit(world(second))
    until(lambda: listens(second))
    assert not listens(first)

    checked.commit(EMPTY)
    until(lambda: not listens(second))
    until(lambda: metric("closeby_health_check_ports") == 0)


def test_a_taken_port_is_told_once_and_opened_when_it_is_free(checked: Checked) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        before = metric("closeby_health_check_listen_failures_total")
        checked.commit(world(port))
        until(lambda: listens(port, "::1"))
        checked.commit(world(port, 2))
        until(lambda: metric("closeby_health_check_listen_failures_total") >= before + 2)
    checked.commit(world(port, 3))
    until(lambda: listens(port))

    assert ask(port)[1]["X-Load-Balancing-Endpoint-Weight"] == "3"
    (told,) = checked.told
    assert (told.reason, told.kind, told.namespace, told.name, told.warning) == (
        "FailedToStartServiceHealthcheck",
        "Service",
        "default",
        "web",
        True,
    )
    assert f"127.0.0.1 port {port}" in told.note


def test_a_slow_request_and_one_without_an_end_harm_nobody(checked: Checked) -> None:
    port = free_port()
    checked.commit(world(port))
    until(lambda: listens(port))
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as slow:
        slow.sendall(b"GET / HT")
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as endless:
            endless.sendall(b"x" * 20_000)
            assert ask(port)[0] == 200
            assert is_cut_off(endless)
        slow.sendall(b"TP/1.1\r\n\r\n")
        assert slow.recv(12) == b"HTTP/1.1 200"


def test_many_ports_are_served_by_one_thread(checked: Checked) -> None:
    ports = sorted({free_port() for _ in range(50)})
    services = [
        Changed(Kind.SERVICE, f"default/s{n}", msgspec.structs.replace(web(port), name=f"default/s{n}"))
        for n, port in enumerate(ports)
    ]
    checked.commit(apply_events(EMPTY, services)[0])
    until(lambda: listens(ports[-1]))

    assert {ask(port)[0] for port in ports} == {503}


def test_an_address_that_the_host_does_not_have_yet_is_no_failure(checked: Checked) -> None:
    port = free_port()
    before = metric("closeby_health_check_listen_failures_total")

    checked.server.committed(Commit(world(port), None, LOOPBACK | {IP("192.0.2.77"), IP("2001:db8::77")}))
    until(lambda: listens(port))

    assert metric("closeby_health_check_listen_failures_total") == before
    assert checked.told == []
