"""The API's objects on the wire, as far as addresses depend on them; absent and null are the same.

metallb.io v1beta1 by the published field tables; core/v1 of Kubernetes 1.36.
"""

import msgspec

from endpointslice.metadata import Wire


class Metadata(Wire, frozen=True):
    """ObjectMeta, with all labels and annotations: selectors and requests are in them."""

    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class WireObject(Wire, frozen=True):
    """Any object, by its name."""

    metadata: Metadata


class SelectorTerm(Wire, frozen=True):
    """meta/v1 LabelSelectorRequirement."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Wire, frozen=True):
    """meta/v1 LabelSelector."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[SelectorTerm] | None = None


class ServiceAllocation(Wire, frozen=True):
    """Of an IPAddressPool: for whom it is."""

    priority: int | None = None
    namespaces: list[str] | None = None
    namespace_selectors: list[LabelSelector] | None = None
    service_selectors: list[LabelSelector] | None = None


class PoolSpec(Wire, frozen=True):
    """IPAddressPoolSpec."""

    addresses: list[str] | None = None
    auto_assign: bool | None = None
    avoid_buggy_ips: bool | None = msgspec.field(default=None, name="avoidBuggyIPs")
    service_allocation: ServiceAllocation | None = None


class Condition(Wire, frozen=True):
    """metav1.Condition."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PoolStatus(Wire, frozen=True):
    """IPAddressPoolStatus, with the conditions that our own schema has besides."""

    assigned_ipv4: int | None = msgspec.field(default=None, name="assignedIPv4")
    assigned_ipv6: int | None = msgspec.field(default=None, name="assignedIPv6")
    available_ipv4: int | None = msgspec.field(default=None, name="availableIPv4")
    available_ipv6: int | None = msgspec.field(default=None, name="availableIPv6")
    conditions: list[Condition] | None = None


class Pool(WireObject, frozen=True):
    """metallb.io/v1beta1 IPAddressPool."""

    spec: PoolSpec = PoolSpec()
    status: PoolStatus | None = None


class PreferredNodes(Wire, frozen=True):
    """One of preferredNodeSelectors."""

    weight: int | None = None
    preference: LabelSelector | None = None


class AdvertisementSpec(Wire, frozen=True):
    """L2AdvertisementSpec."""

    ip_address_pools: list[str] | None = msgspec.field(default=None, name="ipAddressPools")
    ip_address_pool_selectors: list[LabelSelector] | None = msgspec.field(default=None, name="ipAddressPoolSelectors")
    node_selectors: list[LabelSelector] | None = None
    preferred_node_selectors: list[PreferredNodes] | None = None
    interfaces: list[str] | None = None
    service_selectors: list[LabelSelector] | None = None


class Advertisement(WireObject, frozen=True):
    """metallb.io/v1beta1 L2Advertisement."""

    spec: AdvertisementSpec = AdvertisementSpec()


class ServicePort(Wire, frozen=True):
    """core/v1 ServicePort."""

    port: int | None = None
    protocol: str | None = None


class ServiceSpec(Wire, frozen=True):
    """core/v1 ServiceSpec."""

    type: str | None = None
    cluster_ip: str | None = msgspec.field(default=None, name="clusterIP")
    cluster_ips: list[str] | None = msgspec.field(default=None, name="clusterIPs")
    ip_family_policy: str | None = None
    ports: list[ServicePort] | None = None
    external_traffic_policy: str | None = None
    selector: dict[str, str] | None = None
    load_balancer_class: str | None = None
    load_balancer_ip: str | None = msgspec.field(default=None, name="loadBalancerIP")


class Ingress(Wire, frozen=True):
    """core/v1 LoadBalancerIngress."""

    ip: str | None = None


class LoadBalancerStatus(Wire, frozen=True):
    """core/v1 LoadBalancerStatus."""

    ingress: list[Ingress] | None = None


class ServiceStatus(Wire, frozen=True):
    """core/v1 ServiceStatus."""

    load_balancer: LoadBalancerStatus | None = None
    conditions: list[Condition] | None = None


class Service(WireObject, frozen=True):
    """core/v1 Service."""

    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus | None = None


class Namespace(WireObject, frozen=True):
    """core/v1 Namespace."""


class NodeAddress(Wire, frozen=True):
    """core/v1 NodeAddress."""

    address: str = ""


class NodeStatus(Wire, frozen=True):
    """core/v1 NodeStatus, as far as the controller reads it."""

    addresses: list[NodeAddress] | None = None


class Node(WireObject, frozen=True):
    """core/v1 Node."""

    status: NodeStatus | None = None


class Taint(Wire, frozen=True):
    """core/v1 Taint."""

    key: str = ""


class NodeSpec(Wire, frozen=True):
    """core/v1 NodeSpec."""

    unschedulable: bool | None = None
    taints: list[Taint] | None = None


class NodeConditions(Wire, frozen=True):
    """core/v1 NodeStatus, as far as it says how the node is."""

    conditions: list[Condition] | None = None


class NodeState(WireObject, frozen=True):
    """core/v1 Node, as far as announcing from it depends on it."""

    spec: NodeSpec | None = None
    status: NodeConditions | None = None


class Stranger(Wire, frozen=True):
    """A part of ServiceL2Status.status.conflicts."""

    ip: str = ""
    mac: str = ""


class L2StatusStatus(Wire, frozen=True):
    """closeby.dev/v1beta1 ServiceL2Status.status."""

    service_name: str = ""
    service_namespace: str = ""
    conflicts: list[Stranger] | None = None


class L2Status(WireObject, frozen=True):
    """closeby.dev ServiceL2Status, as far as conflicts are concerned: who announces is no news here."""

    status: L2StatusStatus | None = None
