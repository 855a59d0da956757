"""The values that decisions read: what is left of the API's objects once they are decoded, checked and made canonical.

Rules for this file: frozen values only, no I/O, no parsing. A value is None only where absence means something.
What there are thousands of is out of the cyclic collector's sight (`gc=False`): these values can't contain themselves.
Addresses are canonical text; a family is visible in the address (`:` is IPv6), so it is stored only where none is.
"""

from enum import StrEnum
from typing import NewType

import msgspec

IP = NewType("IP", str)  # canonical: "10.0.0.11", "fd00::1"; never with leading zeros, never v4-mapped
CIDR = NewType("CIDR", str)  # canonical network, host bits zero: "10.244.0.0/16"
NodeName = NewType("NodeName", str)
Zone = NewType("Zone", str)
ServiceName = NewType("ServiceName", str)  # "namespace/name"
SliceName = NewType("SliceName", str)  # "namespace/name"
PodName = NewType("PodName", str)  # "namespace/name"
DaemonSetName = NewType("DaemonSetName", str)  # "namespace/name"
Labels = frozenset[tuple[str, str]]


class Family(StrEnum):
    """An IP family, by the API's word for it."""

    IPV4 = "IPv4"
    IPV6 = "IPv6"


class Protocol(StrEnum):
    """A Service port's protocol."""

    TCP = "TCP"
    UDP = "UDP"
    SCTP = "SCTP"


class TrafficPolicy(StrEnum):
    """internalTrafficPolicy or externalTrafficPolicy (KEP-2086)."""

    CLUSTER = "Cluster"
    LOCAL = "Local"


class TrafficDistribution(StrEnum):
    """spec.trafficDistribution (KEP-4444, KEP-3015); any other value counts as none given."""

    PREFER_CLOSE = "PreferClose"
    PREFER_SAME_ZONE = "PreferSameZone"
    PREFER_SAME_NODE = "PreferSameNode"


class Kind(StrEnum):
    """The kinds of object that we read."""

    SERVICE = "Service"
    ENDPOINT_SLICE = "EndpointSlice"
    NODE = "Node"
    DAEMON_SET = "DaemonSet"
    SERVICE_CIDR = "ServiceCIDR"
    POD = "Pod"


class ServicePort(msgspec.Struct, frozen=True, gc=False):
    """One port of a Service; its identity within the Service is (name, protocol)."""

    name: str  # "" for the unnamed port
    protocol: Protocol
    port: int  # 1..65535
    node_port: int = 0  # 0: none


class Service(msgspec.Struct, frozen=True, gc=False):
    """A Service that has at least one ClusterIP; the others are skipped at decode."""

    name: ServiceName
    cluster_ips: tuple[IP, ...]  # at most one per family, in the order of spec.clusterIPs
    ports: tuple[ServicePort, ...]
    type: str = "ClusterIP"  # ClusterIP, NodePort or LoadBalancer
    external_ips: tuple[IP, ...] = ()
    load_balancer_ips: tuple[IP, ...] = ()  # ipMode VIP only (KEP-1860)
    source_ranges: tuple[CIDR, ...] = ()
    internal_traffic_policy: TrafficPolicy = TrafficPolicy.CLUSTER
    external_traffic_policy: TrafficPolicy = TrafficPolicy.CLUSTER
    traffic_distribution: TrafficDistribution | None = None
    affinity_timeout_s: int | None = None  # None: no session affinity
    health_check_node_port: int = 0  # 0: none
    selector: Labels = frozenset()
    announce_on: frozenset[NodeName] = frozenset()  # only these answer for load-balancer addresses; empty: any
    prefer_nodes: tuple[tuple[NodeName, int], ...] = ()  # these before others, by weight
    created: str = ""  # metadata.creationTimestamp as sent, RFC 3339 in UTC: sorts as text; "" when absent
    uid: str = ""  # where it has load-balancer addresses: what is told of them belongs to it


class SlicePort(msgspec.Struct, frozen=True, gc=False):
    """One usable port of a slice."""

    name: str
    protocol: Protocol
    port: int


class SliceEndpoint(msgspec.Struct, frozen=True, gc=False):
    """One usable endpoint of a slice; with a SlicePort it makes an ip:port."""

    ip: IP
    ready: bool = True
    serving: bool = True
    terminating: bool = False
    node: NodeName | None = None  # None: not on a node we know
    zone: Zone | None = None
    for_zones: frozenset[Zone] = frozenset()  # hints; empty: none given
    for_nodes: frozenset[NodeName] = frozenset()
    pod: PodName | None = None  # targetRef, where it is a Pod
    pod_uid: str = ""


class Slice(msgspec.Struct, frozen=True, gc=False):
    """An EndpointSlice of one Service and family, reduced to what is used; equal values are no change (m20)."""

    name: SliceName
    service: ServiceName
    family: Family
    ports: tuple[SlicePort, ...]
    endpoints: tuple[SliceEndpoint, ...]
    triggered: str = ""  # annotation endpoints.kubernetes.io/last-change-trigger-time; for a metric only


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    """One ip:port behind a Service port, after the slices of the Service were merged (m1-m18)."""

    ip: IP
    port: int
    ready: bool = True
    serving: bool = True
    terminating: bool = False
    node: NodeName | None = None
    zone: Zone | None = None
    for_zones: frozenset[Zone] = frozenset()
    for_nodes: frozenset[NodeName] = frozenset()
    pod: PodName | None = None
    pod_uid: str = ""


class Node(msgspec.Struct, frozen=True):
    """A Node, as far as proxying on it depends on it."""

    name: NodeName
    zone: Zone | None = None  # label topology.kubernetes.io/zone
    addresses: tuple[IP, ...] = ()  # InternalIP first, then ExternalIP; the first of a family is the primary one
    pod_cidrs: tuple[CIDR, ...] = ()
    ready: bool = True  # condition Ready; no conditions at all (a manifest): True
    leaving: bool = False  # deletionTimestamp, or the taint ToBeDeletedByClusterAutoscaler: /healthz says so (KEP-3836)


class DaemonSet(msgspec.Struct, frozen=True):
    """A DaemonSet, as far as the same-node rule depends on it."""

    name: DaemonSetName
    template_labels: Labels = frozenset()
    desired: int | None = None  # status.desiredNumberScheduled; None: no status (a manifest)
    max_unavailable: str = "1"  # spec.updateStrategy.rollingUpdate.maxUnavailable, a number or a percentage


class ServiceCIDR(msgspec.Struct, frozen=True):
    """Ranges that ClusterIPs are allocated from."""

    name: str
    cidrs: tuple[CIDR, ...]


class Pod(msgspec.Struct, frozen=True):
    """Who owns a Pod: the proof that the same-node rule asks for, by one GET or from a manifest."""

    name: PodName
    uid: str = ""
    daemon_set: DaemonSetName | None = None  # the controller in ownerReferences, where it is a DaemonSet


Object = Service | Slice | Node | DaemonSet | ServiceCIDR | Pod


class Skipped(msgspec.Struct, frozen=True):
    """An object, or a part of one, that can't be used, and why."""

    object: str  # "Service default/web", "EndpointSlice default/web-x port 2"
    reason: str  # a stable code, for metrics: "no-cluster-ip", "bad-address"
    detail: str = ""  # for people: the field and the value
