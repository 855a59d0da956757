"""As an owner of a load balancer I ask each node whether to send to it, and the answer follows the endpoints."""

import http.client
import json
import socket
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

import pytest

from e2e.cluster.cluster import NAMES, Cluster
from e2e.cluster.daemon import HEALTHZ_PORT, METRICS_PORT
from e2e.cluster.kernel import owned_by_another
from e2e.cluster.space import PORT, Space
from e2e.controlplane.waiting import wait_for
from e2e.world.clients import Target
from e2e.world.netns import run_in

pytestmark = pytest.mark.e2e

HOSTING = ("north-1", "south-1")
VIP = "192.0.2.81"
TAKEN = 32123  # in the API's range for node ports
LOCAL = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}


class Answer(NamedTuple):
    """What a node said; code 0: nobody listens."""

    code: int
    endpoints: int = 0
    weight: str | None = None


def ask(cluster: Cluster, node: str, port: int, family: str = "ipv4") -> Answer:
    """The balancer's question, from outside."""
    address = getattr(cluster.world.host(node), family)

    def get() -> Answer:
        connection = http.client.HTTPConnection(address, port, timeout=30.0)
        try:
            connection.request("GET", "/")
            response = connection.getresponse()
            said: dict[str, Any] = json.loads(response.read())
        except (ConnectionRefusedError, ConnectionResetError):  # closed, or while we asked
            return Answer(0)
        finally:
            connection.close()
        return Answer(response.status, said["localEndpoints"], response.getheader("X-Load-Balancing-Endpoint-Weight"))

    return run_in(cluster.world.outside.netns, get)


def await_answers(cluster: Cluster, port: int, expected: dict[str, Answer]) -> None:
    for family in ("ipv4", "ipv6"):
        for node, answer in expected.items():
            wait_for(
                lambda node=node, answer=answer, family=family: ask(cluster, node, port, family) == answer,  # type: ignore[misc]
                f"{node} says {answer} over {family}",
            )


def check_port(cluster: Cluster, space: Space) -> int:
    stored = cluster.api.get("Service", f"{space.name}/web")
    return int(stored["spec"].get("healthCheckNodePort", 0))


def test_the_port_opens_and_closes_with_the_policy_and_counts_this_nodes_endpoints(
    cluster: Cluster, space: Space
) -> None:
    pods = space.add_pods("web", ["north-1", "north-1", "south-1"])
    space.add_service("web", **LOCAL)
    port = check_port(cluster, space)
    served = {"north-1": Answer(200, 2, "2"), "south-1": Answer(200, 1, "1"), "east-1": Answer(503, 0, "0")}
    await_answers(cluster, port, served)

    space.set_ready(pods[0], ready=False)
    await_answers(cluster, port, {**served, "north-1": Answer(200, 1, "1")})
    cluster.api.patch("Service", f"{space.name}/web", {"spec": {"externalTrafficPolicy": "Cluster"}})
    await_answers(cluster, port, dict.fromkeys(NAMES, Answer(0)))
    space.set_ready(pods[0], ready=True)
    cluster.api.patch("Service", f"{space.name}/web", {"spec": {"externalTrafficPolicy": "Local"}})
    again = check_port(cluster, space)
    await_answers(cluster, again, served)

    cluster.api.delete("Service", f"{space.name}/web")
    await_answers(cluster, again, dict.fromkeys(NAMES, Answer(0)))


def test_a_node_whose_pods_only_drain_says_no_while_it_still_serves(cluster: Cluster, space: Space) -> None:
    pods = dict(zip(HOSTING, space.add_pods("web", HOSTING), strict=True))
    space.add_service("web", **LOCAL)
    ingress = {"ip": VIP, "ipMode": "VIP"}
    cluster.api.patch_status("Service", f"{space.name}/web", {"loadBalancer": {"ingress": [ingress]}})
    cluster.world.route_outside([VIP], "south-1")
    port = check_port(cluster, space)
    await_answers(cluster, port, dict.fromkeys(HOSTING, Answer(200, 1, "1")))

    space.drain_pod(pods["south-1"])

    await_answers(cluster, port, {"south-1": Answer(503, 0, "0"), "north-1": Answer(200, 1, "1")})
    cluster.await_served(Target("tcp", VIP, PORT), {"outside": {"south-1"}})


def test_a_leaving_node_still_answers_for_its_endpoints(cluster: Cluster, space: Space) -> None:
    space.add_pods("web", ["north-1"])
    space.add_service("web", **LOCAL)
    port = check_port(cluster, space)
    node = cluster.daemons["north-1"]
    taint = {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}

    cluster.api.patch("Node", "north-1", {"spec": {"taints": [taint]}})
    try:
        wait_for(lambda: node.http(10256, "/healthz")[0] == 503, "/healthz says that the node is leaving")
        assert node.http(10256, "/livez")[0] == 200
        await_answers(cluster, port, {"north-1": Answer(200, 1, "1")})
    finally:
        cluster.api.patch("Node", "north-1", {"spec": {"taints": None}})
    wait_for(lambda: node.http(10256, "/healthz")[0] == 200, "/healthz is good again")


def test_a_node_whose_proxy_falls_behind_says_no_until_it_has_caught_up(cluster: Cluster, space: Space) -> None:
    """The kernel refuses every change, since the table is another process's."""
    space.add_pods("web", ["north-1"])
    space.add_service("web", **LOCAL)
    port = check_port(cluster, space)
    node = cluster.daemons["north-1"]
    node.stop()
    node.start(flags=["--sync-period", "500ms"])  # so it is behind after one second
    node.await_ready()
    await_answers(cluster, port, {"north-1": Answer(200, 1, "1")})

    take = "delete table ip closeby; add table ip closeby { flags owner; }; add chain ip closeby theirs"
    with owned_by_another(node.site.netns, take):
        await_answers(cluster, port, {"north-1": Answer(503, 1, "1")})
    await_answers(cluster, port, {"north-1": Answer(200, 1, "1")})
    node.stop()  # it starts again as it was


def test_addresses_of_the_proxys_own_pages_that_are_taken_are_told_as_events_and_taken_once_they_are_free(
    cluster: Cluster,
) -> None:
    node = cluster.daemons["east-1"]
    reasons = {"FailedToStartProxierHealthcheck": HEALTHZ_PORT, "FailedToStartMetricServer": METRICS_PORT}

    def told() -> dict[str, Any]:
        about = [one for one in events(cluster, "default") if one["regarding"].get("name") == "east-1"]
        return {one["reason"]: one for one in about if one["reason"] in reasons}

    node.stop()
    with ExitStack() as taken:
        for number in reasons.values():
            taken.enter_context(run_in(node.site.netns, partial(socket.create_server, ("", number))))
        node.start()
        wait_for(lambda: told().keys() == reasons.keys(), "Events tell of both", timeout_s=60.0)

    for reason, number in reasons.items():
        event = told()[reason]
        assert (event["type"], event["regarding"]["kind"]) == ("Warning", "Node")
        assert f":{number}: " in event["note"]
    node.await_ready()
    wait_for(lambda: node.http(METRICS_PORT, "/metrics")[0] == 200, "the metrics page is there", timeout_s=60.0)


def test_a_port_that_another_program_has_is_told_as_an_event_and_opened_once_it_is_free(
    cluster: Cluster, space: Space
) -> None:
    host = cluster.world.host("north-1")
    space.add_pods("web", ["north-1"])
    port = TAKEN
    with run_in(host.netns, lambda: socket.create_server((host.ipv4, port))):
        space.add_service("web", healthCheckNodePort=port, **LOCAL)

        def told() -> list[Any]:
            return [one for one in events(cluster, space.name) if one["reason"] == "FailedToStartServiceHealthcheck"]

        (event,) = wait_for(told, "an Event tells of it")
        assert (event["type"], event["regarding"]["name"]) == ("Warning", "web")
        assert f"{host.ipv4} port {port}" in event["note"]
        good = Answer(200, 1, "1")
        wait_for(lambda: ask(cluster, "north-1", port, "ipv6") == good, "the other family's port knows of the pod")

    await_answers(cluster, port, {"north-1": Answer(200, 1, "1")})


def test_a_start_is_told_as_an_event_of_the_node(cluster: Cluster) -> None:
    for daemon in cluster.daemons.values():
        daemon.stop()
    began = datetime.now(UTC)
    for daemon in cluster.daemons.values():
        daemon.start()

    def starts() -> set[str]:
        told = [one for one in events(cluster, "default") if one["reason"] == "Starting"]
        return {one["regarding"]["name"] for one in told if datetime.fromisoformat(one["eventTime"]) > began}

    wait_for(lambda: starts() == set(NAMES), "an Event tells of each")


def events(cluster: Cluster, namespace: str) -> list[Any]:
    return list(cluster.api.request("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"])
