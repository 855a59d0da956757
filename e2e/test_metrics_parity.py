"""As an operator I point kube-proxy's dashboards at closeby, and the figures are there under the same names."""

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from e2e.cluster.cluster import Cluster
from e2e.cluster.daemon import HEALTHZ_PORT, METRICS_PORT
from e2e.cluster.kernel import list_tables, nft
from e2e.cluster.space import Space
from e2e.controlplane.processes import Component
from e2e.controlplane.waiting import wait_for
from e2e.world.hosts import CLUSTER_CIDRS
from e2e.world.netns import run_in

pytestmark = pytest.mark.e2e

NODE = "east-1"
PEER_METRICS = 10349
PEER_HEALTHZ = 10356
PREFIX = "kubeproxy_"

# What kube-proxy (1.36, nftables mode) has and we leave out, and why; docs/metrics.md tells operators the same.
LEFT_OUT = {
    "process_network_receive_bytes": "of the network namespace, not of the process: node exporters have it",
    "process_network_transmit_bytes": "as the bytes received",
    "process_virtual_memory_max_bytes": "the unlimited address space of a Go process",
    "kubeproxy_sync_proxy_rules_nftables_cleanup_failures": "nothing is cleaned up later, so nothing of it can fail",
}
LEFT_OUT_PREFIXES = {
    "go_": "of the Go runtime",
    "rest_client_": "of client-go",
    "kubernetes_": "build and features of Kubernetes' binaries; ours is closeby_build_info",
    "disabled_metrics": "of Kubernetes' metrics library",
    "hidden_metrics": "of Kubernetes' metrics library",
    "registered_metrics": "of Kubernetes' metrics library",
    "cardinality_enforcement_": "of Kubernetes' metrics library",
    "aggregator_": "of other components in the one binary that our control plane is",
    "apiextensions_": "of other components in the one binary",
    "apiserver_": "of other components in the one binary",
    "node_collector_": "of other components in the one binary",
    "kubelet_": "of other components in the one binary",
}
# Buckets that we have beside kube-proxy's: its smallest useful one is a quarter of a second.
FINER = {"kubeproxy_network_programming_duration_seconds": {0.001, 0.005, 0.025, 0.1}}


class Shape(NamedTuple):
    """What a dashboard depends on."""

    type: str
    labels: frozenset[str]
    buckets: tuple[float, ...] = ()


def shapes(text: str) -> dict[str, Shape]:
    """Each metric by its family's name; labels only where there are samples."""
    found: dict[str, Shape] = {}
    for family in text_string_to_metric_families(text):
        labels = frozenset[str]().union(*(sample.labels for sample in family.samples)) - {"le"}
        edges = {float(sample.labels["le"]) for sample in family.samples if "le" in sample.labels}
        found[family.name] = Shape(family.type, labels, tuple(sorted(edges - {0.0})))  # nothing takes no time at all
    return found


@pytest.fixture
def peer(cluster: Cluster, kube_binary: Path, tmp_path: Path) -> Iterator[str]:
    """kube-proxy on a node beside closeby, for as long as it takes to read its figures; its namespace."""
    netns = cluster.daemons[NODE].site.netns
    kubeconfig = tmp_path / "peer.kubeconfig"
    cluster.plane.kubeconfig(kubeconfig, cluster.plane.admin.token)
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "hostnameOverride": NODE,
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "clusterCIDR": ",".join(CLUSTER_CIDRS),
        "healthzBindAddress": f"127.0.0.1:{PEER_HEALTHZ}",
        "metricsBindAddress": f"127.0.0.1:{PEER_METRICS}",
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    file = tmp_path / "kube-proxy.json"
    file.write_text(json.dumps(config))
    component = Component("kube-proxy", [str(kube_binary), "kube-proxy", f"--config={file}"], tmp_path, netns)
    yield netns
    component.stop()
    for table in list_tables(netns):
        if table.endswith(" kube-proxy"):
            nft(netns, "delete", "table", *table.split())


def get(netns: str, port: int, path: str) -> str:
    """The page, or "" while nobody answers."""

    def ask() -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5.0) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    return run_in(netns, ask)


def has_sample(netns: str, port: int, name: str) -> bool:
    return any(line.startswith(f"{name}{{") for line in get(netns, port, "/metrics").splitlines())


def is_left_out(name: str) -> bool:
    return name in LEFT_OUT or name.startswith(tuple(LEFT_OUT_PREFIXES))


def test_every_figure_of_kube_proxy_is_there_with_its_type_labels_and_buckets_or_is_left_out_for_a_reason(
    space: Space, peer: str
) -> None:
    first_sync = "kubeproxy_sync_full_proxy_rules_duration_seconds_count"
    wait_for(lambda: has_sample(peer, PEER_METRICS, first_sync), "kube-proxy has synced")
    time.sleep(1.1)  # kube-proxy leaves out what was triggered before it started, and the API keeps seconds
    space.add_pods("web", ["south-1"])
    space.add_service("web", type="NodePort", externalTrafficPolicy="Local")
    programmed = "kubeproxy_network_programming_duration_seconds_count"
    for port in (PEER_METRICS, METRICS_PORT):
        wait_for(lambda port=port: has_sample(peer, port, programmed), f"it is programmed on {port}")  # type: ignore[misc]
    for port in (PEER_HEALTHZ, HEALTHZ_PORT):
        for path in ("/healthz", "/livez"):
            assert get(peer, port, path)

    theirs = shapes(get(peer, PEER_METRICS, "/metrics"))
    ours = shapes(get(peer, METRICS_PORT, "/metrics"))

    assert len([name for name in theirs if name.startswith(PREFIX)]) >= 15
    assert {name for name in theirs if name not in ours and not is_left_out(name)} == set()
    assert {name for name in ours if is_left_out(name)} == set(), "the list says that we lack it"
    for name in theirs.keys() & ours.keys():
        finer = FINER.get(name, set())
        mine = ours[name]._replace(buckets=tuple(edge for edge in ours[name].buckets if edge not in finer))
        if theirs[name].labels or theirs[name].buckets or not mine.labels:
            assert mine == theirs[name], name
        else:
            assert mine.type == theirs[name].type, name


def test_the_pages_that_tools_read_beside_the_figures_say_the_same(peer: str) -> None:
    wait_for(lambda: get(peer, PEER_METRICS, "/proxyMode"), "kube-proxy answers")

    assert get(peer, METRICS_PORT, "/proxyMode") == get(peer, PEER_METRICS, "/proxyMode")
    assert shapes(get(peer, METRICS_PORT, "/metrics/slis")) == shapes(get(peer, PEER_METRICS, "/metrics/slis"))
