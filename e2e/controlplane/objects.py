"""Objects as a cluster would have them, without a kubelet: the test writes the status that a kubelet would."""

from collections.abc import Mapping, Sequence

from e2e.controlplane.api import Api, Object

_LINUX = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}


def node(name: str, zone: str, *, pod_cidrs: Sequence[str] = ()) -> Object:
    """A Node in a zone. Without `pod_cidrs` the controller allots them."""
    labels = {**_LINUX, "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
    spec = {"podCIDR": pod_cidrs[0], "podCIDRs": list(pod_cidrs)} if pod_cidrs else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec}


def node_status(*, addresses: Sequence[str] = (), ready: bool = True) -> Object:
    """Status of a Node with room for pods; slices get hints only from Ready nodes with a zone and CPUs."""
    room = {"cpu": "8", "memory": "16Gi", "pods": "500"}
    return {
        "capacity": room,
        "allocatable": room,
        "addresses": [{"type": "InternalIP", "address": address} for address in addresses],
        "conditions": [{"type": "Ready", "status": _truth(ready), "reason": "Test"}],
    }


def pod(name: str, *, node_name: str = "", labels: Mapping[str, str], ports: Mapping[str, int] | None = None) -> Object:
    """A Pod, "namespace/name", bound to a node unless `node_name` is empty; `ports` are named TCP container ports."""
    namespace, _, last = name.rpartition("/")
    container = {
        "name": "main",
        "image": "none",
        "ports": [{"name": port, "containerPort": number} for port, number in (ports or {}).items()],
    }
    spec: Object = {"containers": [container], "terminationGracePeriodSeconds": 30}
    if node_name:
        spec["nodeName"] = node_name
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": last, "namespace": namespace, "labels": dict(labels)},
        "spec": spec,
    }


def pod_status(*ips: str, ready: bool = True) -> Object:
    """Status of a running Pod with these addresses (at most one of each family)."""
    return {
        "phase": "Running",
        "podIP": ips[0],
        "podIPs": [{"ip": ip} for ip in ips],
        "conditions": [{"type": "Ready", "status": _truth(ready)}],
    }


def service(name: str, ports: Mapping[str, int], **spec: object) -> Object:
    """A Service, "namespace/name", selecting app=<name>; `ports` are named TCP ports; `spec` has API field names.

    Dual stack if the cluster is; `type`, `trafficDistribution`, `externalTrafficPolicy`, `selector`, .. go in `spec`.
    """
    namespace, _, last = name.rpartition("/")
    defaults: Object = {
        "selector": {"app": last},
        "ipFamilyPolicy": "PreferDualStack",
        "ports": [{"name": port, "port": number} for port, number in ports.items()],
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": last, "namespace": namespace},
        "spec": {**defaults, **spec},
    }


def add_namespace(api: Api, name: str) -> None:
    """The namespace exists."""
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def add_ready_node(api: Api, name: str, zone: str) -> None:
    """The Node exists and is Ready."""
    api.apply(node(name, zone))
    api.patch_status("Node", name, node_status())


def add_running_pod(api: Api, obj: Object, *ips: str, ready: bool = True) -> None:
    """The Pod exists, runs and has these addresses."""
    meta = obj["metadata"]
    api.apply(obj)
    api.patch_status("Pod", f"{meta['namespace']}/{meta['name']}", pod_status(*ips, ready=ready))


def _truth(value: bool) -> str:  # noqa: FBT001 - the API's conditions are words
    return "True" if value else "False"
