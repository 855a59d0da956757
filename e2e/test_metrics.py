"""As an operator I read from /metrics how many connections each Service's port got, and how near they were served."""

import json
import time

import pytest

from e2e.cluster.cluster import NAMES, Cluster
from e2e.cluster.daemon import HEALTHZ_PORT, METRICS_PORT, Daemon
from e2e.cluster.space import Space, target
from e2e.controlplane.waiting import wait_for
from e2e.world.clients import Target

pytestmark = pytest.mark.e2e

NODE = "north-1"
CLIENT = f"client-{NODE}"
SAME_NODE = {CLIENT: {NODE}}
CONNECTIONS = "closeby_connections_total"
TRIES = 37


def counted(daemon: Daemon, space: Space, port: str, tier: str) -> float:
    return daemon.metric(CONNECTIONS, namespace=space.name, service="web", port=port, tier=tier)


def await_counted(daemon: Daemon, space: Space, port: str, tier: str) -> float:
    """The count, once there is one: the kernel serves a moment before the proxy says what it counts there."""
    return wait_for(lambda: counted(daemon, space, port, tier), f"connections of {tier} are counted")


def send(cluster: Cluster, to: Target, tries: int) -> None:
    tally = cluster.ask(CLIENT, to._replace(tries=tries, timeout_s=10.0))
    assert tally.failed == 0


@pytest.mark.parametrize("family", [0, 1], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_connections_grow_by_exactly_those_that_were_made(
    cluster: Cluster, space: Space, protocol: str, family: int
) -> None:
    space.add_pods("web", NAMES)
    stored = space.add_service("web", trafficDistribution="PreferSameNode")
    web = target(stored, protocol, ip=stored["spec"]["clusterIPs"][family])
    cluster.await_served(web, SAME_NODE)
    node = cluster.daemons[NODE]
    # Until the slices knew of every pod, some may have gone farther.
    before = await_counted(node, space, protocol, "same-node")
    far = counted(node, space, protocol, "cluster")

    send(cluster, web, TRIES)

    assert counted(node, space, protocol, "same-node") - before == TRIES
    assert counted(node, space, protocol, "cluster") == far


def test_connections_of_a_tier_that_is_no_longer_in_use_are_not_lost(cluster: Cluster, space: Space) -> None:
    pods = space.add_pods("web", NAMES)
    web = target(space.add_service("web", trafficDistribution="PreferSameNode"))
    cluster.await_served(web, SAME_NODE)
    node = cluster.daemons[NODE]
    near = await_counted(node, space, "tcp", "same-node")

    send(cluster, web, TRIES)
    space.set_ready(pods[NAMES.index(NODE)], ready=False)
    cluster.await_served(web, {CLIENT: {"north-2"}})
    zone = await_counted(node, space, "tcp", "same-zone")
    send(cluster, web, TRIES + 1)

    # Some of those that looked whether it has moved were still served near, so at least.
    assert counted(node, space, "tcp", "same-node") >= near + TRIES
    assert counted(node, space, "tcp", "same-zone") == zone + TRIES + 1
    assert zone > 0


def test_what_the_proxy_did_is_told_under_kube_proxys_names(cluster: Cluster, space: Space) -> None:
    node = cluster.daemons[NODE]
    programmed = "kubeproxy_network_programming_duration_seconds_count"
    syncs = "kubeproxy_sync_proxy_rules_duration_seconds_count"
    changes = "kubeproxy_sync_proxy_rules_endpoint_changes_total"
    labels: dict[str, dict[str, str]] = {programmed: {"ip_family": "IPv4"}, syncs: {"ip_family": "IPv4"}, changes: {}}
    before = {name: node.metric(name, **with_labels) for name, with_labels in labels.items()}
    began = time.time()

    space.add_pods("web", ["south-1"])
    web = target(space.add_service("web"))
    cluster.await_served(web, {CLIENT: {"south-1"}})

    # The kernel serves a moment before the proxy has counted that it does.
    wait_for(
        lambda: all(node.metric(name, **with_labels) > before[name] for name, with_labels in labels.items()),
        f"each of {', '.join(labels)} has grown",
    )
    last = node.metric("kubeproxy_sync_proxy_rules_last_timestamp_seconds", ip_family="IPv4")
    assert began < last <= time.time()
    assert node.metric("closeby_loop_errors_total") == 0


def test_endpoints_in_use_and_objects_left_out_are_counted(cluster: Cluster, space: Space) -> None:
    node = cluster.daemons[NODE]
    wait_for(lambda: node.metric("closeby_endpoints", tier="same-node") == 0, "other stories' Services are gone")
    space.add_pods("web", NAMES)
    near = target(space.add_service("near", selector={"app": "web"}, trafficDistribution="PreferSameNode"))
    space.add_service("local", selector={"app": "web"}, internalTrafficPolicy="Local")
    cluster.await_served(near, SAME_NODE)

    wait_for(lambda: node.metric("closeby_endpoints", tier="same-node") == 4, "a TCP and a UDP port of two families")
    wait_for(lambda: node.metric("closeby_endpoints", tier="local-policy") == 4, "and as many by the policy")


def test_the_pages_that_probes_and_tools_ask_for(cluster: Cluster) -> None:
    node = cluster.daemons[NODE]

    healthz, livez, readyz = (node.http(HEALTHZ_PORT, page) for page in ("/healthz", "/livez", "/readyz"))

    assert [code for code, _ in (healthz, livez, readyz)] == [200, 200, 200]
    assert json.loads(healthz[1])["nodeEligible"] is True
    assert node.http(METRICS_PORT, "/proxyMode") == (200, "nftables")


def test_a_node_that_the_autoscaler_drains_is_alive_and_no_longer_healthy(cluster: Cluster) -> None:
    node = cluster.daemons["east-1"]
    taint = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}

    cluster.api.patch("Node", "east-1", {"spec": {"taints": [taint]}})
    try:
        wait_for(lambda: node.http(HEALTHZ_PORT, "/healthz")[0] == 503, "/healthz says that the node is leaving")
        assert node.http(HEALTHZ_PORT, "/livez")[0] == 200
    finally:
        cluster.api.patch("Node", "east-1", {"spec": {"taints": None}})
    wait_for(lambda: node.http(HEALTHZ_PORT, "/healthz")[0] == 200, "it stays")
