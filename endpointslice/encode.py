"""Values back to the API's shape, as plain dicts: what `dump` writes and a folder of manifests can hold.

Only what decisions read is there, so decoding it again gives the same values. Objects that were skipped aren't.
"""

from collections.abc import Iterable

from endpointslice.addresses import family_of
from endpointslice.announcers import Announcers, render_announcers
from endpointslice.metadata import LEAVING_TAINT, SERVICE_NAME, TRIGGERED, ZONE
from endpointslice.snapshot import Snapshot
from endpointslice.types import (
    DaemonSet,
    Kind,
    Labels,
    Node,
    Object,
    Pod,
    Service,
    ServiceCIDR,
    ServicePort,
    Slice,
    SliceEndpoint,
)

Encoded = dict[str, object]


def encode_snapshot(snapshot: Snapshot) -> list[Encoded]:
    """Every object, sorted by kind and name."""
    slices = {name: piece for pieces in snapshot.slices.values() for name, piece in pieces.items()}
    tables = (snapshot.services, slices, snapshot.nodes, snapshot.daemon_sets, snapshot.service_cidrs, snapshot.pods)
    return [encode_object(table[name]) for table in tables for name in sorted(table)]  # type: ignore[index]


def encode_object(value: Object) -> Encoded:
    """One object."""
    match value:
        case Service():
            return _encode_service(value)
        case Slice():
            return _encode_slice(value)
        case Node():
            return _encode_node(value)
        case DaemonSet():
            return _encode_daemon_set(value)
        case ServiceCIDR():
            return _encode_service_cidr(value)
    return _encode_pod(value)


def _envelope(kind: Kind, version: str, name: str, **metadata: object) -> Encoded:
    """The head of an object; metadata without a value is left out."""
    namespace, slash, own_name = name.rpartition("/")
    named = {"name": own_name, **({"namespace": namespace} if slash else {})}
    return {"apiVersion": version, "kind": kind.value, "metadata": {**named, **_given(**metadata)}}


def _given(**fields: object) -> Encoded:
    """The fields that hold something; the API leaves out empty ones, too."""
    return {name: value for name, value in fields.items() if value or value is False}


def _labels(labels: Labels) -> dict[str, str]:
    return dict(sorted(labels))


def _encode_service(service: Service) -> Encoded:
    affinity = {"clientIP": {"timeoutSeconds": service.affinity_timeout_s}}
    spec = _given(
        type=service.type,
        clusterIP=service.cluster_ips[0],
        clusterIPs=list(service.cluster_ips),
        ipFamilies=[family_of(ip).value for ip in service.cluster_ips],
        ports=[_encode_port(port) for port in service.ports],
        externalIPs=list(service.external_ips),
        loadBalancerSourceRanges=list(service.source_ranges),
        internalTrafficPolicy=service.internal_traffic_policy.value,
        externalTrafficPolicy=service.external_traffic_policy.value,
        trafficDistribution=service.traffic_distribution.value if service.traffic_distribution else None,
        sessionAffinity="None" if service.affinity_timeout_s is None else "ClientIP",
        sessionAffinityConfig=None if service.affinity_timeout_s is None else affinity,
        healthCheckNodePort=service.health_check_node_port,
        selector=_labels(service.selector),
    )
    ingress = [{"ip": ip, "ipMode": "VIP"} for ip in service.load_balancer_ips]
    annotations = render_announcers(Announcers(service.announce_on, service.prefer_nodes))
    known = {"creationTimestamp": service.created, "uid": service.uid, "annotations": annotations}
    head = _envelope(Kind.SERVICE, "v1", service.name, **known)
    return {**head, "spec": spec, **_given(status={"loadBalancer": {"ingress": ingress}} if ingress else None)}


def _encode_port(port: ServicePort) -> Encoded:
    return _given(name=port.name, protocol=port.protocol.value, port=port.port, nodePort=port.node_port)


def _encode_slice(piece: Slice) -> Encoded:
    head = _envelope(
        Kind.ENDPOINT_SLICE,
        "discovery.k8s.io/v1",
        piece.name,
        labels={SERVICE_NAME: piece.service.rpartition("/")[2]},
        annotations={TRIGGERED: piece.triggered} if piece.triggered else None,
    )
    ports = [{"name": port.name, "protocol": port.protocol.value, "port": port.port} for port in piece.ports]
    endpoints = [_encode_endpoint(endpoint) for endpoint in piece.endpoints]
    return {**head, "addressType": piece.family.value, "ports": ports, "endpoints": endpoints}


def _encode_endpoint(endpoint: SliceEndpoint) -> Encoded:
    namespace, _slash, name = (endpoint.pod or "").rpartition("/")
    return _given(
        addresses=[endpoint.ip],
        conditions={"ready": endpoint.ready, "serving": endpoint.serving, "terminating": endpoint.terminating},
        nodeName=endpoint.node,
        zone=endpoint.zone,
        hints=_given(forZones=_hints(endpoint.for_zones), forNodes=_hints(endpoint.for_nodes)),
        targetRef=_given(kind=Kind.POD.value, namespace=namespace, name=name, uid=endpoint.pod_uid) if name else None,
    )


def _hints(names: Iterable[str]) -> list[dict[str, str]]:
    return [{"name": name} for name in sorted(names)]


def _encode_node(node: Node) -> Encoded:
    status = {
        "addresses": [{"type": "InternalIP", "address": ip} for ip in node.addresses],
        "conditions": [{"type": "Ready", "status": str(node.ready)}],
    }
    head = _envelope(Kind.NODE, "v1", node.name, labels={ZONE: node.zone} if node.zone else None)
    taints = [{"key": LEAVING_TAINT, "effect": "NoSchedule"}] if node.leaving else None
    return {**head, "spec": _given(podCIDRs=list(node.pod_cidrs), taints=taints), "status": status}


def _encode_daemon_set(daemon_set: DaemonSet) -> Encoded:
    text = daemon_set.max_unavailable
    is_number = text.isdecimal() and text == str(int(text))
    spec = {
        "template": {"metadata": _given(labels=_labels(daemon_set.template_labels))},
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": int(text) if is_number else text}},
    }
    head = {**_envelope(Kind.DAEMON_SET, "apps/v1", daemon_set.name), "spec": spec}
    return head if daemon_set.desired is None else {**head, "status": {"desiredNumberScheduled": daemon_set.desired}}


def _encode_service_cidr(service_cidr: ServiceCIDR) -> Encoded:
    head = _envelope(Kind.SERVICE_CIDR, "networking.k8s.io/v1", service_cidr.name)
    return {**head, "spec": {"cidrs": list(service_cidr.cidrs)}}


def _encode_pod(pod: Pod) -> Encoded:
    """The owner's uid isn't known, so it isn't there."""
    owner = (pod.daemon_set or "").rpartition("/")[2]
    reference = {"apiVersion": "apps/v1", "kind": Kind.DAEMON_SET.value, "name": owner, "controller": True}
    return _envelope(Kind.POD, "v1", pod.name, uid=pod.uid, ownerReferences=[reference] if owner else None)
