"""On a real cluster a Service gets an address of the nodes' own network, and a client beside them is served at it."""

import json
import time
from collections.abc import Iterator

import pytest

from e2e.console import open_console
from e2e.controlplane.waiting import wait_for
from e2e.demo.l2.judge import Fate
from e2e.kind.cluster import Cluster
from e2e.kind.install import install_addresses, remove_addresses
from e2e.kind.steps import steps_on
from e2e.stories.beside import Beside
from e2e.stories.servers import PROGRAMS, render_programs, render_service, render_workload
from e2e.stories.shop import IMAGE

pytestmark = [pytest.mark.kind, pytest.mark.timeout(1800)]

_NAME = "hello"
_LIMIT = "--timeout=300s"
_DARK_S = 30.0  # about one second on a machine that has one to spare
_HANG_S = 6.0


@pytest.fixture(scope="module")
def beside(kind_cluster: Cluster) -> Iterator[Beside]:
    """The client; controller and announcers are on the shared cluster meanwhile, and a pool of the nodes' network."""
    if kind_cluster.docker.netns is None:
        pytest.skip("the nodes' network is this machine's own, which isn't ours to enter")
    client = Beside(kind_cluster)
    try:
        install_addresses(kind_cluster, steps_on(open_console()))
        pool = {
            "apiVersion": "metallb.io/v1beta1",
            "kind": "IPAddressPool",
            "metadata": {"name": "lan", "namespace": "metallb-system"},
            "spec": {"addresses": [client.pool(4)]},
        }
        advertisement = {**pool, "kind": "L2Advertisement", "spec": {"ipAddressPools": ["lan"]}}
        service = render_service(_NAME, {"type": "LoadBalancer", "trafficDistribution": "PreferClose"})
        servers = render_workload("DaemonSet", _NAME, IMAGE)
        items = [pool, advertisement, render_programs(), servers, service]
        kind_cluster.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        kind_cluster.kubectl("rollout", "status", f"daemonset/{_NAME}", _LIMIT)
        yield client
    finally:
        names = [f"{kind}/{_NAME}" for kind in ("daemonset", "service")]
        kind_cluster.kubectl("delete", "--ignore-not-found", *names, f"configmap/{PROGRAMS}")
        remove_addresses(kind_cluster)


@pytest.fixture(scope="module")
def vip(kind_cluster: Cluster, beside: Beside) -> str:
    """The Service's address, announced by one node."""
    path = "jsonpath={.status.loadBalancer.ingress[0].ip}"
    found = wait_for(
        lambda: kind_cluster.kubectl("get", "service", _NAME, "-o", path), "it has an address", timeout_s=300
    )
    beside.owner(found)
    return found


def test_the_owners_own_pod_answers_who_asks_from_beside_the_nodes(beside: Beside, vip: str) -> None:
    owner = beside.owner(vip)

    answers = {json.loads(beside.get(f"http://{vip}"))["name"].partition("@")[2] for _ in range(20)}

    assert answers == {owner}


def test_an_update_of_the_announcers_moves_nothing(kind_cluster: Cluster, beside: Beside, vip: str) -> None:
    daemon_set = "daemonset/closeby-announcer"

    def update(_owner: str) -> None:
        kind_cluster.kubectl("--namespace=kube-system", "rollout", "restart", daemon_set)
        kind_cluster.kubectl("--namespace=kube-system", "rollout", "status", daemon_set, _LIMIT)

    moved = beside.watch(vip, Fate(moves=False, dark_s=_DARK_S), update, after_s=2.0)

    assert moved.complaints == ()


def test_a_node_that_hangs_is_replaced(kind_cluster: Cluster, beside: Beside, vip: str) -> None:
    def hang(owner: str) -> None:
        kind_cluster.docker.run("docker", "pause", owner)
        try:
            time.sleep(_HANG_S)
        finally:
            kind_cluster.docker.run("docker", "unpause", owner)

    moved = beside.watch(vip, Fate(moves=True, dark_s=_DARK_S), hang, after_s=2.0)

    assert moved.complaints == ()
