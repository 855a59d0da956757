"""EFFECT: the two proxies as processes, each in its node's network namespace, and what they say of themselves."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from e2e.bench.rig import CLOSEBY_NODE, PEER_NODE, Rig
from e2e.controlplane.netns import connect_in
from e2e.controlplane.processes import Component
from e2e.controlplane.waiting import wait_for
from e2e.world.hosts import CLUSTER_CIDRS

_HEALTH_PORT = 10256
_METRICS_PORT = 10249
_TIMEOUT_S = 60.0  # kube-proxy may be busy for that long
_FULL_SYNCS = "kubeproxy_sync_full_proxy_rules_duration_seconds_sum"


class ProxySpec(NamedTuple):
    """One of the two."""

    name: str  # closeby or kube-proxy
    node: str
    netns: str
    table: str  # of nftables, in both families
    services: str  # its map from a ClusterIP, protocol and port to a verdict
    command: tuple[str, ...]


class RunningProxy(NamedTuple):
    """A process, and the monotonic time just before it was started."""

    spec: ProxySpec
    component: Component
    started_s: float

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.component.pid


def closeby_spec(rig: Rig, folder: Path) -> ProxySpec:
    """The closeby that is installed in this Python's environment."""
    command = (
        str(Path(sys.executable).parent / "closeby"),
        "run",
        f"--kubeconfig={rig.kubeconfigs[CLOSEBY_NODE]}",
        f"--hostname-override={CLOSEBY_NODE}",
        f"--cluster-cidr={','.join(CLUSTER_CIDRS)}",
        f"--healthz-bind-address=127.0.0.1:{_HEALTH_PORT}",
        f"--metrics-bind-address=127.0.0.1:{_METRICS_PORT}",
        f"--control-socket={folder / 'closeby.sock'}",
        "--log-format=json",
    )
    netns = rig.world.nodes[CLOSEBY_NODE].host.netns
    return ProxySpec("closeby", CLOSEBY_NODE, netns, "closeby", "service_ports", command)


def peer_spec(rig: Rig, folder: Path, binary: Path) -> ProxySpec:
    """The real kube-proxy in nftables mode, with its defaults but for conntrack limits, which are the host's."""
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "hostnameOverride": PEER_NODE,
        "clientConnection": {"kubeconfig": str(rig.kubeconfigs[PEER_NODE])},
        "clusterCIDR": ",".join(CLUSTER_CIDRS),
        "detectLocalMode": "ClusterCIDR",
        "healthzBindAddress": f"127.0.0.1:{_HEALTH_PORT}",
        "metricsBindAddress": f"127.0.0.1:{_METRICS_PORT}",
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }
    path = folder / "kube-proxy.json"
    path.write_text(json.dumps(config, indent=1))
    netns = rig.world.nodes[PEER_NODE].host.netns
    command = (str(binary), "kube-proxy", f"--config={path}")
    return ProxySpec("kube-proxy", PEER_NODE, netns, "kube-proxy", "service-ips", command)


@contextmanager
def run_proxy(rig: Rig, spec: ProxySpec) -> Iterator[RunningProxy]:
    """The proxy runs until the end of the block; its rules stay."""
    started_s = time.monotonic()
    component = Component(spec.name, list(spec.command), rig.logs, spec.netns)
    try:
        yield RunningProxy(spec, component, started_s)
    finally:
        component.stop()


def wait_synced(proxy: RunningProxy, timeout_s: float) -> float:
    """Seconds that the proxy says its full syncs took, once it says so: later than the kernel has all. TimeoutError."""
    return wait_for(lambda: _full_sync_seconds(proxy), f"{proxy.spec.name} has synced", timeout_s=timeout_s)


def _full_sync_seconds(proxy: RunningProxy) -> float:
    """What /metrics has, of IPv4 where it tells families apart: one transaction may have both."""
    connection = HTTPConnection("127.0.0.1", _METRICS_PORT)
    connection.sock = connect_in(proxy.spec.netns, ("127.0.0.1", _METRICS_PORT), _TIMEOUT_S)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == _FULL_SYNCS and sample.labels.get("ip_family") in {None, "", "IPv4"}
    )
