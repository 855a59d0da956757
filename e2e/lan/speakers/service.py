"""The Service whose address closeby moves, as a manifest; every node has an endpoint: its own server."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from e2e.lan.members import MOST_NODES, TCP_PORT, UDP_PORT, VIPS, Family, Member, plan_nodes

_PORTS = (("http", "TCP", TCP_PORT), ("echo", "UDP", UDP_PORT))
_CLUSTER_IPS = ["10.96.0.10", "fd00:10:96::a"]


def write_service(folder: Path) -> None:
    """EFFECT: the manifests, once."""
    folder.mkdir(exist_ok=True)
    path = folder / "service.yaml"
    if not path.exists():
        path.write_text(render_service(plan_nodes("", MOST_NODES)))


def render_service(nodes: Sequence[Member]) -> str:
    """The Service, of policy Local so that the owner's own server answers, and a slice a family."""
    service: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "moved", "namespace": "default"},
        "spec": {
            "type": "LoadBalancer",
            "clusterIP": _CLUSTER_IPS[0],
            "clusterIPs": _CLUSTER_IPS,
            "ipFamilies": ["IPv4", "IPv6"],
            "externalTrafficPolicy": "Local",
            "ports": [{"name": name, "protocol": protocol, "port": port} for name, protocol, port in _PORTS],
        },
        "status": {"loadBalancer": {"ingress": [{"ip": vip, "ipMode": "VIP"} for vip in VIPS.values()]}},
    }
    return yaml.safe_dump_all([service, *(_slice(family, nodes) for family in Family)])


def _slice(family: Family, nodes: Sequence[Member]) -> dict[str, Any]:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"moved-{family}",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "moved"},
        },
        "addressType": "IPv4" if family is Family.IPV4 else "IPv6",
        "ports": [{"name": name, "protocol": protocol, "port": port} for name, protocol, port in _PORTS],
        "endpoints": [
            {"addresses": [node.address(family)], "nodeName": node.name, "conditions": {"ready": True}}
            for node in nodes
        ],
    }
