"""Workloads and Services of a story, as manifests. No I/O.

A server is `e2e/world/server.py` under closeby's image, which has a Python: it answers with its pod's name and its
node's, as `pod@node`, and the source address that it saw.
"""

from collections.abc import Mapping
from pathlib import Path

PORT = 8080
_FOLDER = Path(__file__).parents[1] / "world"
PROGRAMS = "story-programs"  # the ConfigMap
_DRAIN_S = 15  # a server goes on answering while the proxies learn that it ends: one may be starting just then


def render_programs() -> dict[str, object]:
    """The ConfigMap that servers run from."""
    data = {"server.py": (_FOLDER / "server.py").read_text()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": PROGRAMS}, "data": data}


def render_workload(
    kind: str,
    name: str,
    image: str,
    spec: Mapping[str, object] | None = None,
    pod: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """A Deployment or DaemonSet of servers labelled `app: name`.

    `spec` adds to the workload's ("replicas", ..), `pod` to its pods' ("topologySpreadConstraints", ..).
    """
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {**_pod(image), **(pod or {})}},
            **(spec or {}),
        },
    }


def render_service(name: str, spec: Mapping[str, object] | None = None) -> dict[str, object]:
    """A dual-stack Service of the servers `app: name`, TCP and UDP; `spec` adds to it ("trafficDistribution", ..)."""
    ports = [
        {"name": protocol.lower(), "protocol": protocol, "port": 80, "targetPort": PORT} for protocol in ("TCP", "UDP")
    ]
    base = {"selector": {"app": name}, "ipFamilyPolicy": "PreferDualStack", "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {**base, **(spec or {})}}


def _pod(image: str) -> dict[str, object]:
    def field(path: str) -> dict[str, object]:
        return {"valueFrom": {"fieldRef": {"fieldPath": path}}}

    program = ["/usr/bin/python3.11", "-I", "-S", "/programs/server.py"]
    container = {
        "name": "server",
        "image": image,
        "imagePullPolicy": "Never",
        "command": [*program, "$(POD)@$(NODE)", f"tcp:{PORT}", f"udp:{PORT}"],
        "env": [{"name": "POD", **field("metadata.name")}, {"name": "NODE", **field("spec.nodeName")}],
        "volumeMounts": [{"name": "programs", "mountPath": "/programs"}],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
        "lifecycle": {"preStop": {"sleep": {"seconds": _DRAIN_S}}},
        "resources": {"requests": {"cpu": "1m"}},
    }
    volumes = [{"name": "programs", "configMap": {"name": PROGRAMS}}]
    return {"terminationGracePeriodSeconds": _DRAIN_S + 1, "containers": [container], "volumes": volumes}
