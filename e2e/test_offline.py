"""As an operator I ask what a node does and why from my desk: from a dump or the API server, without a node."""

import json
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster.cluster import NAMES, Cluster
from e2e.cluster.daemon import Ended
from e2e.cluster.space import POD_PORT, Space, target
from e2e.controlplane.api import Object
from e2e.controlplane.waiting import wait_for
from e2e.world.hosts import CLUSTER_CIDRS

pytestmark = pytest.mark.e2e

NODE = "north-1"
PLACE = {f"client-{name}": {name} for name in NAMES}


def add_agent(cluster: Cluster, space: Space) -> Object:
    """A Service whose answer needs all that is read: a DaemonSet, its pods' owner, the node's zone, hints."""
    space.add_daemon_set("agent")
    agent = space.add_service("agent", trafficDistribution="PreferClose", type="NodePort")
    for ip in agent["spec"]["clusterIPs"]:
        cluster.await_served(target(agent, ip=ip), PLACE)
    return agent


def plan(output: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output)
    return found


def test_a_dump_gives_the_same_plan_and_the_same_reasons_as_the_daemon(
    cluster: Cluster, space: Space, tmp_path: Path
) -> None:
    add_agent(cluster, space)
    node = cluster.daemons[NODE]
    file = tmp_path / "dump.json"

    def ask() -> tuple[Ended, list[Ended]] | None:
        """The dump, and what the daemon said while it was true; None if something changed meanwhile."""
        before = node.command("dump")
        said = [node.command(*words) for words in (("plan", "-o", "json"), ("explain", f"{space.name}/agent"))]
        return (before, said) if node.command("dump") == before else None

    dumped, asked = wait_for(ask, "nothing changes for a moment")
    file.write_text(dumped.output)
    offline = [
        node.run(*words, "--dump", str(file)) for words in (("plan", "-o", "json"), ("explain", f"{space.name}/agent"))
    ]

    assert (dumped.code, dumped.error) == (0, "")
    assert [done.code for done in (*asked, *offline)] == [0] * 4
    assert plan(offline[0].output) == plan(asked[0].output)
    assert offline[1].output == asked[1].output
    assert "token" not in dumped.output.lower()


def test_the_plan_is_what_the_packets_do(cluster: Cluster, space: Space) -> None:
    agent = add_agent(cluster, space)

    done = cluster.daemons[NODE].command("plan", "-o", "json")

    found = plan(done.output)
    (port,) = (
        service
        for service in found["services"]
        if (service["service"], service["port"], service["family"]) == (f"{space.name}/agent", "tcp", "IPv4")
    )
    by_kind = {(frontend["kind"], frontend["from"]): frontend for frontend in port["frontends"]}
    pod = next(pod for pod in cluster.world.pods.values() if pod.node == NODE and pod.ports)
    assert (found["node"], found["zone"]) == (NODE, "north")
    assert by_kind["ClusterIP", "this-node"] == {
        "kind": "ClusterIP",
        "ip": agent["spec"]["clusterIP"],
        "port": 80,
        "from": "this-node",
        "verdict": "dnat",
        "endpoints": [f"{pod.host.ipv4}:{POD_PORT}"],
        "tier": "same-node",
        "reason": "daemon-set-on-node",
        "source": "kept",
        "family": "IPv4",
        "source_ranges": [],
    }
    assert by_kind["ClusterIP", "outside"]["source"] == "masqueraded"
    assert by_kind["NodePort", "any"]["ip"] is None
    assert by_kind["NodePort", "any"]["source"] == "masqueraded"
    assert len(port["left_out"]) == len(NAMES) - 1


@pytest.mark.parametrize("node", [NODE, "east-1"])
def test_a_plan_from_the_api_server_is_that_nodes_own_plan(cluster: Cluster, space: Space, node: str) -> None:
    add_agent(cluster, space)
    cidrs = ("--cluster-cidr", ",".join(CLUSTER_CIDRS))

    def agree() -> bool:
        """Not while the daemon has yet to hear of something."""
        far = cluster.daemons[NODE].run(
            "plan", "--node", node, "--kubeconfig", str(cluster.kubeconfig), "-o", "json", *cidrs
        )
        own = cluster.daemons[node].command("plan", "-o", "json")
        assert (far.code, own.code) == (0, 0)
        return plan(far.output) == plan(own.output)

    wait_for(agree, "both plans are the same")


def test_explain_says_whose_answer_holds_for_a_client(cluster: Cluster, space: Space) -> None:
    space.add_pods("web", ["north-2"])
    web = space.add_service("web", type="NodePort", externalTrafficPolicy="Local")
    cluster.await_served(target(web), {"client-north-1": {"north-2"}})
    node = cluster.daemons[NODE]

    inside, outside = (
        node.command("explain", f"{space.name}/web", "--from", client)
        for client in (cluster.world.host("client-north-1").ipv4, cluster.world.outside.ipv4)
    )

    assert (inside.code, outside.code) == (0, 0)
    assert "no endpoint is on this node" in " ".join(outside.output.split())
    assert "no endpoint is on this node" not in " ".join(inside.output.split())


def test_explain_of_a_service_that_is_not_there_says_so(cluster: Cluster) -> None:
    done = cluster.daemons[NODE].command("explain", "default/no-such")

    assert done.code == 1
    assert done.error == "closeby: there is no Service default/no-such in this source\n"
