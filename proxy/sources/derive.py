"""Slices for a folder's Services that have none, from its Pods, as the endpointslice controller would make them. Pure.

Followed: KEP-752, KEP-1672 (conditions), KEP-4444 and KEP-3015 (hints). One liberty: a Pod without any condition, as
people write it by hand, counts as ready.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from endpointslice.addresses import family_of, parse_ip
from endpointslice.decode import Changed, convert_document
from endpointslice.metadata import HEADLESS, SERVICE_NAME, ZONE
from endpointslice.types import IP, Family, ServiceName, TrafficDistribution

_ZONAL = set(TrafficDistribution)  # every known value hints zones
_FINISHED = {"Succeeded", "Failed"}


class _Wire(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a document."""


class _Metadata(_Wire, frozen=True):
    name: str
    namespace: str = "default"
    labels: dict[str, str] | None = None
    uid: str = ""
    deletion_timestamp: str | None = None


class _ServicePort(_Wire, frozen=True):
    port: int
    name: str = ""
    protocol: str = "TCP"
    target_port: int | str = 0  # 0 or "": as `port`


class _ServiceSpec(_Wire, frozen=True):
    selector: dict[str, str] | None = None
    ports: tuple[_ServicePort, ...] = ()
    type: str = "ClusterIP"
    traffic_distribution: str = ""
    publish_not_ready_addresses: bool = False


class _Service(_Wire, frozen=True, tag_field="kind", tag="Service"):
    metadata: _Metadata
    spec: _ServiceSpec = _ServiceSpec()


class _ContainerPort(_Wire, frozen=True):
    container_port: int
    name: str = ""
    protocol: str = "TCP"


class _Container(_Wire, frozen=True):
    ports: tuple[_ContainerPort, ...] = ()


class _PodSpec(_Wire, frozen=True):
    node_name: str | None = None
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()  # a sidecar is one (KEP-753)


class _PodIP(_Wire, frozen=True):
    ip: str = ""


class _Condition(_Wire, frozen=True):
    type: str = ""
    status: str = ""


class _PodStatus(_Wire, frozen=True):
    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: tuple[_PodIP, ...] = msgspec.field(default=(), name="podIPs")
    conditions: tuple[_Condition, ...] = ()


class _Pod(_Wire, frozen=True, tag_field="kind", tag="Pod"):
    metadata: _Metadata
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


class _Node(_Wire, frozen=True, tag_field="kind", tag="Node"):
    metadata: _Metadata


Ingredient = _Service | _Pod | _Node  # what slices are derived from


class _Port(NamedTuple):
    """A port of a slice."""

    name: str
    protocol: str
    port: int


def read_ingredient(document: object) -> Ingredient | None:
    """The part of a document that matters here; None for other kinds and for what `convert_document` reports anyway."""
    try:
        ingredient: Ingredient = msgspec.convert(document, Ingredient)
    except msgspec.ValidationError:
        return None
    return ingredient


def derive_slices(ingredients: Iterable[Ingredient], with_slices: Collection[ServiceName]) -> Iterator[Changed]:
    """Slices of the Services that have a selector, matching Pods, and are not in `with_slices`."""
    services: list[_Service] = []
    pods: dict[str, list[_Pod]] = defaultdict(list)  # by namespace
    zones: dict[str, str] = {}  # of nodes
    for ingredient in ingredients:
        match ingredient:
            case _Service() if _wants_slices(ingredient, with_slices):
                services.append(ingredient)
            case _Pod() if ingredient.status.phase not in _FINISHED:
                pods[ingredient.metadata.namespace].append(ingredient)
            case _Node():
                zones[ingredient.metadata.name] = (ingredient.metadata.labels or {}).get(ZONE, "")
    for service in services:
        selector = (service.spec.selector or {}).items()
        matching = [pod for pod in pods[service.metadata.namespace] if selector <= (pod.metadata.labels or {}).items()]
        for slice_document in _make_slices(service, matching, zones):
            yield from convert_document(slice_document)


def _wants_slices(service: _Service, with_slices: Collection[ServiceName]) -> bool:
    name = ServiceName(f"{service.metadata.namespace}/{service.metadata.name}")
    return bool(service.spec.selector) and service.spec.type != "ExternalName" and name not in with_slices


def _make_slices(service: _Service, pods: Iterable[_Pod], zones: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """One slice for each family and each way in which named ports resolve, as the controller groups them."""
    groups: dict[tuple[Family, tuple[_Port, ...]], list[dict[str, Any]]] = defaultdict(list)
    for pod in pods:
        ports = tuple(_resolve_ports(service, pod))
        for family, ip in _pod_ips(pod).items():
            groups[family, ports].append(_make_endpoint(service, pod, ip, zones))
    counts: dict[Family, int] = defaultdict(int)
    for (family, ports), endpoints in sorted(groups.items(), key=lambda group: group[0]):
        counts[family] += 1
        number = f"-{counts[family]}" if counts[family] > 1 else ""
        yield {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": f"{service.metadata.name}-derived-{family.lower()}{number}",
                "namespace": service.metadata.namespace,
                "labels": {**_kept_labels(service), SERVICE_NAME: service.metadata.name},
            },
            "addressType": str(family),
            "ports": [port._asdict() for port in ports],
            "endpoints": endpoints,
        }


def _resolve_ports(service: _Service, pod: _Pod) -> Iterator[_Port]:
    """The Service's ports on this pod; one whose named target the pod doesn't have is left out."""
    for port in service.spec.ports:
        target = port.target_port or port.port
        if isinstance(target, str):
            target = _find_port(pod, target, port.protocol)
        if target:
            yield _Port(port.name, port.protocol, target)


def _find_port(pod: _Pod, name: str, protocol: str) -> int:
    """The number of a named container port, 0 if there is none."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    ports = (port for container in containers for port in container.ports)
    return next((port.container_port for port in ports if (port.name, port.protocol) == (name, protocol)), 0)


def _pod_ips(pod: _Pod) -> dict[Family, IP]:
    """The first address of each family."""
    addresses: dict[Family, IP] = {}
    for text in (*(pod_ip.ip for pod_ip in pod.status.pod_ips), pod.status.pod_ip):
        ip = parse_ip(text)
        if ip is not None:
            addresses.setdefault(family_of(ip), ip)
    return addresses


def _make_endpoint(service: _Service, pod: _Pod, ip: IP, zones: Mapping[str, str]) -> dict[str, Any]:
    serving = not pod.status.conditions or any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)
    terminating = pod.metadata.deletion_timestamp is not None
    ready = service.spec.publish_not_ready_addresses or (serving and not terminating)
    node, zone = pod.spec.node_name, zones.get(pod.spec.node_name or "", "")
    hints: dict[str, Any] = {}
    if ready and zone and service.spec.traffic_distribution in _ZONAL:
        hints["forZones"] = [{"name": zone}]
    if ready and node and service.spec.traffic_distribution == TrafficDistribution.PREFER_SAME_NODE:
        hints["forNodes"] = [{"name": node}]
    return {
        "addresses": [ip],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "nodeName": node,
        "zone": zone or None,
        "hints": hints,
        "targetRef": {
            "kind": "Pod",
            "name": pod.metadata.name,
            "namespace": pod.metadata.namespace,
            "uid": pod.metadata.uid,
        },
    }


def _kept_labels(service: _Service) -> dict[str, str]:
    """What the slice controller takes over: all but its own label for slices of headless Services."""
    return {key: value for key, value in (service.metadata.labels or {}).items() if key != HEADLESS}
