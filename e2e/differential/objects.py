"""A state as Kubernetes objects: what is applied, and what a difference is printed as. Pure."""

from collections.abc import Iterator

from e2e.controlplane.api import Object
from e2e.differential.model import DaemonSetSpec, EndpointSpec, PortSpec, ServiceSpec, SlicePortSpec, SliceSpec, State
from e2e.differential.places import NAMESPACE, NODE, NODE_IPS

_LABELS = {"endpointslice.kubernetes.io/managed-by": "differential"}  # no controller takes it for its own
_APP = "app"
_CONTAINERS = [{"name": "main", "image": "none"}]
MADE = "closeby.test/made"  # a slice with another value is another slice


def render_state(state: State) -> Iterator[Object]:
    """Each Service after its DaemonSet with this node's pods, and followed by its slices; statuses are in them."""
    for service in state.services:
        if service.daemon_set:
            yield _daemon_set(service.name, service.daemon_set)
            yield from _pods(service, service.daemon_set)
        yield render_service(service)
        for piece in service.slices:
            yield render_slice(service.name, piece)


def render_service(service: ServiceSpec) -> Object:
    """A Service without selector."""
    families = ["IPv6" if ":" in ip else "IPv4" for ip in service.cluster_ips]
    spec: Object = {
        "type": service.type,
        "clusterIP": service.cluster_ips[0],
        "clusterIPs": list(service.cluster_ips),
        "ipFamilies": families,
        "ipFamilyPolicy": "RequireDualStack" if len(families) > 1 else "SingleStack",
        "internalTrafficPolicy": service.internal_policy,
        "ports": [_service_port(port) for port in service.ports],
    }
    if service.type != "ClusterIP" or service.external_ips:
        spec["externalTrafficPolicy"] = service.external_policy
    if service.type == "LoadBalancer":
        spec["allocateLoadBalancerNodePorts"] = False  # node ports as the world has them
    if service.daemon_set:
        spec["selector"] = {_APP: service.name}
    if service.source_ranges:
        spec["loadBalancerSourceRanges"] = list(service.source_ranges)
    if service.sticky:
        spec["sessionAffinity"] = "ClientIP"
    if service.external_ips:
        spec["externalIPs"] = list(service.external_ips)
    if service.distribution is not None:
        spec["trafficDistribution"] = service.distribution
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service.name, "namespace": NAMESPACE, "labels": _hiding(service.label)},
        "spec": spec,
        "status": {"loadBalancer": _balancer(service)},
    }


def _balancer(service: ServiceSpec) -> Object:
    return {"ingress": [{"ip": one.ip, "ipMode": one.mode} for one in service.balancer_ips]}


def render_slice(service: str, piece: SliceSpec) -> Object:
    """A slice of the Service of that name."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{service}-{piece.name}",
            "namespace": NAMESPACE,
            "labels": {**_LABELS, "kubernetes.io/service-name": service, **_hiding(piece.label)},
            "annotations": {MADE: str(piece.made)},
        },
        "addressType": "IPv6" if piece.is_ipv6 else "IPv4",
        "ports": [_slice_port(port) for port in piece.ports],
        "endpoints": [_endpoint(endpoint) for endpoint in piece.endpoints],
    }


def render_node(zone: str | None) -> Object:
    """The node of both proxies, for a manifest folder."""
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    addresses = [{"type": "InternalIP", "address": ip} for ip in NODE_IPS]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE, "labels": labels},
        "status": {"addresses": addresses},
    }


def _service_port(port: PortSpec) -> Object:
    number = {"nodePort": port.node_port} if port.node_port else {}
    return {"name": port.name, "protocol": port.protocol, "port": port.port, **number}


def _slice_port(port: SlicePortSpec) -> Object:
    number = {"port": port.port} if port.port is not None else {}
    return {"name": port.name, "protocol": port.protocol, **number}


def _endpoint(endpoint: EndpointSpec) -> Object:
    conditions = {"ready": endpoint.ready, "serving": endpoint.serving, "terminating": endpoint.terminating}
    hints: Object = {}
    if endpoint.for_zones:
        hints["forZones"] = [{"name": zone} for zone in endpoint.for_zones]
    if endpoint.for_nodes:
        hints["forNodes"] = [{"name": node} for node in endpoint.for_nodes]
    written: Object = {
        "addresses": [endpoint.ip],
        "conditions": {name: value for name, value in conditions.items() if value is not None},
    }
    if endpoint.node is not None:
        written["nodeName"] = endpoint.node
    if endpoint.zone is not None:
        written["zone"] = endpoint.zone
    if hints:
        written["hints"] = hints
    if endpoint.pod:
        written["targetRef"] = {"kind": "Pod", "name": endpoint.pod, "namespace": NAMESPACE}
    return written


def _hiding(label: str) -> dict[str, str]:
    return {label: "other"} if label else {}


def _daemon_set(name: str, spec: DaemonSetSpec) -> Object:
    labels = {_APP: name}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": _CONTAINERS}},
        },
        "status": {
            "desiredNumberScheduled": spec.desired,
            "currentNumberScheduled": spec.desired,
            "numberMisscheduled": 0,
            "numberReady": 0,
        },
    }


def _pods(service: ServiceSpec, spec: DaemonSetSpec) -> Iterator[Object]:
    """Of this node only: closeby asks for no others."""
    endpoints = (one for piece in service.slices for one in piece.endpoints)
    kind, owner = ("DaemonSet", service.name) if spec.owns else ("ReplicaSet", "other")
    for name in sorted({one.pod for one in endpoints if one.pod and one.node == NODE}):
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "labels": {_APP: service.name},
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": f"uid-{owner}", "controller": True}
                ],
            },
            "spec": {"nodeName": NODE, "containers": _CONTAINERS},
        }
