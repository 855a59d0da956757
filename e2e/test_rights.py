"""As an administrator I give closeby fewer rights than it asks for, and it says what it can't do, and does the rest."""

from pathlib import Path

import pytest
import yaml

from e2e.cluster.cluster import ACCOUNT, NAMES, RBAC, Cluster
from e2e.cluster.daemon import HEALTHZ_PORT
from e2e.cluster.space import Space, target
from e2e.controlplane.api import Api, ApiError
from e2e.controlplane.waiting import wait_for

pytestmark = pytest.mark.e2e

NODE = "north-1"
SAME_NODE = {f"client-{name}": {name} for name in NAMES}


def narrowed(name: str, without: str) -> str:
    """deploy/base/rbac.yaml for another account, without the rights on one resource."""
    documents = [*yaml.safe_load_all(RBAC.read_text())]
    for document in documents:
        document["metadata"]["name"] = name
        for rule in document.get("rules", ()):
            rule["resources"] = [resource for resource in rule["resources"] if resource != without]
        if "roleRef" in document:
            document["roleRef"]["name"] = document["subjects"][0]["name"] = name
    for document in documents:
        if "rules" in document:
            document["rules"] = [rule for rule in document["rules"] if rule["resources"]]
    return yaml.safe_dump_all(documents)


@pytest.mark.parametrize(
    ("without", "expected"),
    [
        pytest.param("daemonsets", {"north-1", "north-2"}, id="no DaemonSets: the zone instead of the node"),
        pytest.param("pods", {"north-1", "north-2"}, id="no Pods: the zone instead of the node"),
        pytest.param("nodes", {"north-1"}, id="no Nodes: the own pod all the same"),
        pytest.param("servicecidrs", {"north-1"}, id="no ServiceCIDRs: all the same"),
        pytest.param("events", {"north-1"}, id="no Events: all the same"),
    ],
)
def test_what_may_not_be_read_is_done_without_and_told(
    cluster: Cluster, space: Space, tmp_path: Path, without: str, expected: set[str]
) -> None:
    space.add_daemon_set("agent")
    agent = target(space.add_service("agent", trafficDistribution="PreferClose"))
    cluster.await_served(agent, SAME_NODE)
    node = cluster.daemons[NODE]
    kubeconfig = tmp_path / "narrow.kubeconfig"
    cluster.add_account(kubeconfig, narrowed(f"no-{without}", without), (ACCOUNT[0], f"no-{without}"))

    node.stop()
    node.start("--kubeconfig", str(kubeconfig))
    node.await_ready()
    cluster.await_served(agent, {**SAME_NODE, f"client-{NODE}": expected})
    wait_for(lambda: any(without in str(event) for event in node.events() if event["level"] == "warning"), "it says so")
    node.stop()
    node.start()

    cluster.await_served(agent, SAME_NODE)


def test_without_the_rights_on_services_nothing_is_removed(cluster: Cluster, space: Space, tmp_path: Path) -> None:
    space.add_pods("web", ["south-1"])
    web = target(space.add_service("web"))
    cluster.await_served(web, {f"client-{NODE}": {"south-1"}})
    node = cluster.daemons[NODE]
    kubeconfig = tmp_path / "narrow.kubeconfig"
    cluster.add_account(kubeconfig, narrowed("no-services", "services"), (ACCOUNT[0], "no-services"))

    node.stop()
    node.start("--kubeconfig", str(kubeconfig))
    lost = wait_for(
        lambda: node.events("started") and node.events("watch_lost"), "it says that it may not read Services"
    )
    cluster.await_served(web, {f"client-{NODE}": {"south-1"}})

    assert {event["kind"] for event in lost} == {"Service"}
    assert "403" in lost[0]["error"]
    assert node.http(HEALTHZ_PORT, "/readyz")[0] == 503
    node.stop()
    node.start()


def test_the_shipped_rights_are_no_more_than_are_used(cluster: Cluster) -> None:
    closeby = Api(cluster.plane.access(cluster.plane.service_account_token(*ACCOUNT)))

    for kind in ("Secret", "ConfigMap", "Pod", "Event"):
        with pytest.raises(ApiError, match="403 Forbidden"):
            closeby.items(kind)
    with pytest.raises(ApiError, match="403 Forbidden"):
        closeby.patch("Node", NODE, {"metadata": {"labels": {"mine": "yes"}}})
