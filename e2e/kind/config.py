"""What a cluster is asked to be, and kind's configuration for it. No I/O."""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

import yaml

from e2e.kind.host import Host

ZONE_LABEL = "topology.kubernetes.io/zone"
_ZONES = ("north", "south", "east")
_PATIENCE = "10m0s"
_PATIENT = (
    *("controlPlaneComponentHealthCheck", "discovery", "etcdAPICall", "kubeletHealthCheck", "kubernetesAPICall"),
    "tlsBootstrap",
)
_ZONED_FROM = 6  # upstream's traffic distribution specs want two workers in each of three zones


class Proxy(StrEnum):
    """Who makes Services work."""

    NONE = "none"
    KUBE_PROXY = "kube-proxy"
    CLOSEBY = "closeby"


class Wanted(NamedTuple):
    """A cluster as asked for."""

    name: str
    workers: int
    proxy: Proxy
    image: str  # of the nodes


def render_config(wanted: Wanted, host: Host) -> str:
    """Kind's configuration file (kind.sigs.k8s.io/docs/user/configuration)."""
    config: dict[str, object] = {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": wanted.name,
        "networking": {
            "ipFamily": "dual",
            "disableDefaultCNI": True,  # routes.py makes the pods' network, of plugins alone: no image is needed
            "kubeProxyMode": "nftables" if wanted.proxy is Proxy.KUBE_PROXY else "none",
        },
        "nodes": [{"role": "control-plane", "image": wanted.image}, *_workers(wanted)],
    }
    config["kubeadmConfigPatches"] = [yaml.safe_dump(patch) for patch in _kubeadm_patches(host)]
    if host.no_sys_resource:  # lowering an oom_score_adj takes the capability; each sandbox would fail on it
        config["containerdConfigPatches"] = ['[plugins."io.containerd.grpc.v1.cri"]\nrestrict_oom_score_adj = true\n']
    return yaml.safe_dump(config, sort_keys=False)


def _kubeadm_patches(host: Host) -> Iterator[dict[str, object]]:
    """Patience for machines that others use too; kubeadm itself gives up on the API server after a minute."""
    for kind in ("InitConfiguration", "JoinConfiguration"):
        yield {"kind": kind, "apiVersion": "kubeadm.k8s.io/v1beta4", "timeouts": dict.fromkeys(_PATIENT, _PATIENCE)}
    if host.cgroup_v1:
        yield {"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1", "failCgroupV1": False}


def _workers(wanted: Wanted) -> list[dict[str, object]]:
    """Workers, in zones in turn where the cluster is large enough for them."""
    worker: dict[str, object] = {"role": "worker", "image": wanted.image}
    if wanted.workers < _ZONED_FROM:
        return [worker] * wanted.workers
    zones = (_ZONES[number % len(_ZONES)] for number in range(wanted.workers))
    return [{**worker, "labels": {ZONE_LABEL: zone}} for zone in zones]
