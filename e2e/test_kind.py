"""A real cluster comes up, its Services work from pods on every node, and nothing of it is left."""

import pytest
from rich.console import Console

from e2e.controlplane.waiting import wait_for
from e2e.kind.cluster import Cluster
from e2e.kind.config import Proxy
from e2e.kind.daemon import list_leftovers
from e2e.kind.docker import CommandError
from e2e.kind.life import Ask, bring_down, bring_up, is_prepared, list_running

NAME = "story"
WORKERS = (f"{NAME}-worker", f"{NAME}-worker2")
ANSWER_S = 120.0
ASKED = "kubernetes.default.svc.cluster.local"


@pytest.mark.kind
@pytest.mark.timeout(1800)
def test_services_work_on_a_real_cluster_and_nothing_of_it_is_left() -> None:
    if not is_prepared():
        pytest.skip("no node image yet: `make kind` makes one, once")
    console = Console(stderr=True)
    try:
        cluster = bring_up(Ask(NAME, len(WORKERS), Proxy.KUBE_PROXY), console)
        nodes = cluster.nodes()
        assert [node.name for node in nodes] == [cluster.control_plane, *WORKERS]
        assert all(node.ready and len(node.pod_cidrs) == 2 for node in nodes)
        for worker in WORKERS:
            await_dns(cluster, start_pod(cluster, worker))
    finally:
        bring_down(NAME, console)
    running = [left.name for left in list_running(console)]
    assert NAME not in running
    if not running:
        assert list_leftovers() == []


def await_dns(cluster: Cluster, pod: str) -> None:
    """Returns once the cluster's DNS, by its ClusterIP, tells the pod the API's."""
    dns = cluster.kubectl("-n", "kube-system", "get", "service", "kube-dns", "-o", "jsonpath={.spec.clusterIP}")
    api = cluster.kubectl("get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}")

    def ask() -> bool:
        try:
            return cluster.kubectl("exec", pod, "--", "dig", "+short", f"@{dns}", ASKED).strip() == api
        except CommandError:
            return False

    wait_for(ask, f"{pod} is told {api} by {dns}", timeout_s=ANSWER_S)


def start_pod(cluster: Cluster, node: str) -> str:
    """A pod of tools on the node: the image of kube-proxy, which every node has."""
    tag = cluster.kubectl("-n", "kube-system", "get", "daemonset", "kube-proxy", "-o", "jsonpath={..image}")
    name = f"tools-{node}"
    overrides = f'{{"spec": {{"nodeName": "{node}"}}}}'
    cluster.kubectl("run", name, f"--image={tag}", f"--overrides={overrides}", "--command", "--", "sleep", "infinity")
    cluster.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=120s")
    return name
