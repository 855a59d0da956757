"""On a real cluster whose only service proxy is closeby, Services work from pods on every node."""

import ipaddress
from collections.abc import Iterator

import pytest

from e2e.controlplane.waiting import wait_for
from e2e.kind.cluster import Cluster
from e2e.kind.docker import CommandError

pytestmark = [pytest.mark.kind, pytest.mark.timeout(600, func_only=True)]

ANSWER_S = 120.0
ASKED = "kubernetes.default.svc.cluster.local"
IMAGE = "{.spec.template.spec.containers[0].image}"
PYTHON = ("/usr/bin/python3.11", "-I", "-c")
# Asks DNS by its ClusterIP, then connects to the ClusterIP that it was told.
CALL = f"import socket; print(socket.create_connection(({ASKED!r}, 443), 5).getpeername()[0])"


@pytest.fixture
def pods(kind_cluster: Cluster) -> Iterator[list[str]]:
    """A running pod on each node, of closeby's image, which has a Python."""
    image = kind_cluster.kubectl("-n", "kube-system", "get", "daemonset", "closeby", "-o", f"jsonpath={IMAGE}")
    names = [f"tools-{node.name}" for node in kind_cluster.nodes()]
    for node, name in zip(kind_cluster.nodes(), names, strict=True):
        spec = f'{{"spec": {{"nodeName": "{node.name}", "terminationGracePeriodSeconds": 0}}}}'
        flags = (f"--image={image}", "--image-pull-policy=Never", f"--overrides={spec}", "--command")
        kind_cluster.kubectl("run", name, *flags, "--", *PYTHON, "import signal; signal.pause()")
    yield names
    kind_cluster.kubectl("delete", "pod", "--wait=false", *names)


def test_every_node_is_ready_with_a_range_for_pods_of_each_family(kind_cluster: Cluster) -> None:
    nodes = kind_cluster.nodes()
    assert kind_cluster.control_plane in [node.name for node in nodes]
    assert len(nodes) > 1
    for node in nodes:
        assert node.ready
        assert {ipaddress.ip_network(cidr).version for cidr in node.pod_cidrs} == {4, 6}


def test_closeby_is_the_only_service_proxy(kind_cluster: Cluster) -> None:
    listed = kind_cluster.kubectl("-n", "kube-system", "get", "daemonsets", "-o", "name").split()
    assert "daemonset.apps/closeby" in listed
    assert "daemonset.apps/kube-proxy" not in listed


def test_a_pod_on_each_node_reaches_the_dns_and_the_api_by_their_cluster_ips(
    kind_cluster: Cluster, pods: list[str]
) -> None:
    api = kind_cluster.kubectl("get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}")
    for pod in pods:
        kind_cluster.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", f"--timeout={ANSWER_S:.0f}s")

        def ask(pod: str = pod) -> bool:
            try:
                return kind_cluster.kubectl("exec", pod, "--", *PYTHON, CALL).strip() == api
            except CommandError:
                return False

        wait_for(ask, f"{pod} is told {api}, and reaches it", timeout_s=ANSWER_S)
