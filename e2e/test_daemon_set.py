"""As an operator of a DaemonSet (DNS, a log agent) I write PreferClose, and pods use the one on their node."""

import pytest

from e2e.cluster.cluster import NAMES, Cluster
from e2e.cluster.space import Space, target

pytestmark = pytest.mark.e2e

SAME_NODE = {f"client-{name}": {name} for name in NAMES}


def test_traffic_stays_on_the_node_and_goes_to_the_zone_while_the_pod_there_is_not_ready(
    cluster: Cluster, space: Space
) -> None:
    pods = space.add_daemon_set("agent")
    agent = target(space.add_service("agent", trafficDistribution="PreferClose"), "udp")

    cluster.await_served(agent, SAME_NODE)
    space.set_ready(pods["north-1"], ready=False)
    cluster.await_served(agent, {**SAME_NODE, "client-north-1": {"north-2"}})
    space.set_ready(pods["north-1"], ready=True)
    cluster.await_served(agent, SAME_NODE)


def test_a_pod_that_is_replaced_is_used_by_its_node_again(cluster: Cluster, space: Space) -> None:
    before = space.add_daemon_set("agent")
    agent = target(space.add_service("agent", trafficDistribution="PreferClose"))
    cluster.await_served(agent, SAME_NODE)

    space.remove_pod(before["east-1"])
    cluster.await_served(agent, {**SAME_NODE, "client-east-1": set(NAMES) - {"east-1"}})
    after = space.run_daemon_pods("agent")
    cluster.await_served(agent, SAME_NODE)

    assert after["east-1"] != before["east-1"]


def test_explain_says_that_and_why_the_rule_is_on(cluster: Cluster, space: Space) -> None:
    space.add_daemon_set("agent")
    agent = target(space.add_service("agent", trafficDistribution="PreferClose"))
    cluster.await_served(agent, SAME_NODE)

    said = cluster.daemons["south-1"].command("explain", f"{space.name}/agent")

    assert said.code == 0
    assert "same node for a DaemonSet's pods: on: the DaemonSet covers its nodes" in said.output


def test_pods_of_no_daemon_set_keep_to_the_zone_even_if_every_node_has_one(cluster: Cluster, space: Space) -> None:
    space.add_pods("web", NAMES)
    web = target(space.add_service("web", trafficDistribution="PreferClose"))

    cluster.await_served(web, {"client-north-1": {"north-1", "north-2"}, "client-east-1": {"east-1"}})
