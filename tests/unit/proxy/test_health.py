"""The health server: codes, bodies and addresses."""

import http.client
import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from prometheus_client import REGISTRY

from proxy.config import BindAddress
from proxy.health import Health, render_health, serve_health

THEN, NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC), datetime(2026, 1, 1, 12, 5, tzinfo=UTC)
GOOD = Health(healthy=True, ready=True, node_eligible=True, last_updated=THEN, families=("IPv4", "IPv6"))
STALE = GOOD._replace(healthy=False)
LEAVING = GOOD._replace(node_eligible=False)
STARTING = GOOD._replace(ready=False)


class Answer(NamedTuple):
    """What came over HTTP."""

    code: int
    kind: str | None
    body: dict[str, object]


class Told:
    """What the loop says of itself, as the test has it."""

    def __init__(self) -> None:
        self.health = GOOD
        self.server = serve_health(BindAddress("", 0), lambda: self.health)


@pytest.fixture(scope="module")
def told() -> Iterator[Told]:
    made = Told()
    yield made
    made.server.shutdown()
    made.server.server_close()


def get(told: Told, path: str, host: str = "127.0.0.1") -> Answer:
    connection = http.client.HTTPConnection(host, told.server.server_address[1], timeout=60)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return Answer(response.status, response.getheader("Content-Type"), json.loads(response.read()))
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("health", "path", "code"),
    [
        pytest.param(GOOD, "/healthz", 200, id="all is well"),
        pytest.param(STALE, "/healthz", 503, id="a change waits too long"),
        pytest.param(LEAVING, "/healthz", 503, id="the Node is leaving: balancers should stop sending"),
        pytest.param(GOOD, "/livez", 200, id="alive"),
        pytest.param(STALE, "/livez", 503, id="stuck: a restart may help"),
        pytest.param(LEAVING, "/livez", 200, id="a leaving Node is no reason for a restart"),
        pytest.param(GOOD, "/readyz", 200, id="the first sync is done"),
        pytest.param(STARTING, "/readyz", 503, id="the first sync is not done"),
        pytest.param(STARTING, "/healthz", 200, id="while it starts it is healthy"),
        pytest.param(GOOD, "/healthz?verbose", 200, id="a query changes nothing"),
        pytest.param(GOOD, "/nothing", 404, id="another path"),
    ],
)
def test_codes(told: Told, health: Health, path: str, code: int) -> None:
    told.health = health

    answer = get(told, path)

    assert (answer.code, answer.kind) == (code, "application/json")


def test_a_healthy_body_is_up_to_date_and_has_kube_proxys_keys() -> None:
    code, body = render_health(GOOD, NOW, with_node=True)

    family = {"lastUpdated": NOW.isoformat(), "healthy": True}
    assert (code, body) == (
        200,
        {
            "lastUpdated": NOW.isoformat(),
            "currentTime": NOW.isoformat(),
            "nodeEligible": True,
            "healthy": True,
            "status": {"IPv4": family, "IPv6": family},
        },
    )


def test_a_stale_body_has_the_time_of_the_last_good_sync_and_livez_says_nothing_of_the_node() -> None:
    code, body = render_health(STALE, NOW, with_node=False)

    assert code == 503
    assert body["lastUpdated"] == THEN.isoformat()
    assert body["healthy"] is False
    assert "nodeEligible" not in body


def test_probes_are_counted_by_code(told: Told) -> None:
    told.health = STALE
    labels = {"code": "503"}
    before = REGISTRY.get_sample_value("kubeproxy_proxy_healthz_total", labels) or 0.0

    get(told, "/healthz")

    assert REGISTRY.get_sample_value("kubeproxy_proxy_healthz_total", labels) == before + 1


def test_without_a_host_both_families_are_served(told: Told) -> None:
    told.health = GOOD

    assert get(told, "/livez", "127.0.0.1").code == 200
    assert get(told, "/livez", "::1").code == 200


def test_an_address_that_is_taken_is_an_os_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        serve_health(BindAddress("127.0.0.1", taken.getsockname()[1]), lambda: GOOD)
