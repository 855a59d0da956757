"""EFFECT: closeby and kube-proxy, each in the namespace of its copy of the node."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.controlplane.processes import Component
from e2e.differential.places import NODE
from e2e.world.hosts import CLUSTER_CIDRS

PROXIES = ("closeby", "kube-proxy")
_HEALTHZ = "127.0.0.1:10256"
_METRICS = "127.0.0.1:10249"


@contextmanager
def run_proxy(name: str, netns: str, kubeconfig: Path, folder: Path, binary: Path) -> Iterator[Component]:
    """The proxy of that name runs until the end of the block."""
    folder.mkdir(exist_ok=True)
    command = _closeby(kubeconfig, folder) if name == "closeby" else _kube_proxy(kubeconfig, folder, binary)
    component = Component(name, command, folder, netns)
    try:
        yield component
    finally:
        component.stop()


def _closeby(kubeconfig: Path, folder: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "proxy", "run"),
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={NODE}",
        f"--cluster-cidr={','.join(CLUSTER_CIDRS)}",
        f"--healthz-bind-address={_HEALTHZ}",
        f"--metrics-bind-address={_METRICS}",
        f"--control-socket={folder / 'closeby.sock'}",
        "--log-format=json",
    ]


def _kube_proxy(kubeconfig: Path, folder: Path, binary: Path) -> list[str]:
    """With its defaults, but for conntrack's sysctls, which are left alone, and the pause between two syncs."""
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "hostnameOverride": NODE,
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "clusterCIDR": ",".join(CLUSTER_CIDRS),
        "detectLocalMode": "ClusterCIDR",
        "healthzBindAddress": _HEALTHZ,
        "metricsBindAddress": _METRICS,
        "nftables": {"minSyncPeriod": "10ms"},
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    path = folder / "config.json"
    path.write_text(json.dumps(config, indent=1))
    return [str(binary), "kube-proxy", f"--config={path}"]
