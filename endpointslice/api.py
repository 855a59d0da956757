"""The API's objects on the wire: only the fields that are read, so that everything else is skipped unparsed.

Absent and null are the same to the API's own Go types, so every field may be both; what absence means is decided where
the value is converted. Kubernetes 1.36; sources: core/v1, discovery.k8s.io/v1 (KEP-752), apps/v1, networking.k8s.io/v1.
"""

import msgspec

from endpointslice.metadata import Wire, WireObject


class ServicePort(Wire, frozen=True):
    """core/v1 ServicePort."""

    port: int | None = None
    name: str | None = None
    protocol: str | None = None
    node_port: int | None = None


class ClientIPConfig(Wire, frozen=True):
    """core/v1 ClientIPConfig."""

    timeout_seconds: int | None = None


class SessionAffinityConfig(Wire, frozen=True):
    """core/v1 SessionAffinityConfig."""

    client_ip: ClientIPConfig | None = msgspec.field(default=None, name="clientIP")


class ServiceSpec(Wire, frozen=True):
    """core/v1 ServiceSpec."""

    type: str | None = None
    cluster_ip: str | None = msgspec.field(default=None, name="clusterIP")
    cluster_ips: list[str] | None = msgspec.field(default=None, name="clusterIPs")
    ip_families: list[str] | None = None
    ports: list[ServicePort] | None = None
    external_ips: list[str] | None = msgspec.field(default=None, name="externalIPs")
    load_balancer_source_ranges: list[str] | None = None
    internal_traffic_policy: str | None = None
    external_traffic_policy: str | None = None
    traffic_distribution: str | None = None
    session_affinity: str | None = None
    session_affinity_config: SessionAffinityConfig | None = None
    health_check_node_port: int | None = None
    selector: dict[str, str] | None = None


class Ingress(Wire, frozen=True):
    """core/v1 LoadBalancerIngress."""

    ip: str | None = None
    ip_mode: str | None = None


class LoadBalancerStatus(Wire, frozen=True):
    """core/v1 LoadBalancerStatus."""

    ingress: list[Ingress] | None = None


class ServiceStatus(Wire, frozen=True):
    """core/v1 ServiceStatus."""

    load_balancer: LoadBalancerStatus | None = None


class Service(WireObject, frozen=True):
    """core/v1 Service."""

    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus | None = None


class Conditions(Wire, frozen=True):
    """discovery.k8s.io/v1 EndpointConditions (KEP-1672)."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class Hint(Wire, frozen=True):
    """ForZone (KEP-2433) or ForNode (KEP-3015)."""

    name: str = ""


class Hints(Wire, frozen=True):
    """discovery.k8s.io/v1 EndpointHints."""

    for_zones: list[Hint] | None = None
    for_nodes: list[Hint] | None = None


class ObjectReference(Wire, frozen=True):
    """core/v1 ObjectReference."""

    kind: str | None = None
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None


class Endpoint(Wire, frozen=True):
    """discovery.k8s.io/v1 Endpoint."""

    addresses: list[str] | None = None
    conditions: Conditions | None = None
    hints: Hints | None = None
    node_name: str | None = None
    zone: str | None = None
    target_ref: ObjectReference | None = None


class EndpointPort(Wire, frozen=True):
    """discovery.k8s.io/v1 EndpointPort."""

    name: str | None = None
    port: int | None = None
    protocol: str | None = None


class EndpointSlice(WireObject, frozen=True):
    """discovery.k8s.io/v1 EndpointSlice (KEP-752); no spec."""

    address_type: str | None = None
    endpoints: list[Endpoint] | None = None
    ports: list[EndpointPort] | None = None


class Taint(Wire, frozen=True):
    """core/v1 Taint."""

    key: str = ""


class NodeSpec(Wire, frozen=True):
    """core/v1 NodeSpec."""

    pod_cidr: str | None = msgspec.field(default=None, name="podCIDR")
    pod_cidrs: list[str] | None = msgspec.field(default=None, name="podCIDRs")
    taints: list[Taint] | None = None


class NodeAddress(Wire, frozen=True):
    """core/v1 NodeAddress."""

    type: str = ""
    address: str = ""


class NodeCondition(Wire, frozen=True):
    """core/v1 NodeCondition."""

    type: str = ""
    status: str = ""


class NodeStatus(Wire, frozen=True):
    """core/v1 NodeStatus."""

    addresses: list[NodeAddress] | None = None
    conditions: list[NodeCondition] | None = None


class Node(WireObject, frozen=True):
    """core/v1 Node."""

    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class TemplateMetadata(Wire, frozen=True):
    """ObjectMeta of a pod template: all its labels, to match selectors against."""

    labels: dict[str, str] | None = None


class PodTemplate(Wire, frozen=True):
    """core/v1 PodTemplateSpec."""

    metadata: TemplateMetadata | None = None


class RollingUpdate(Wire, frozen=True):
    """apps/v1 RollingUpdateDaemonSet."""

    max_unavailable: int | str | None = None


class UpdateStrategy(Wire, frozen=True):
    """apps/v1 DaemonSetUpdateStrategy."""

    rolling_update: RollingUpdate | None = None


class DaemonSetSpec(Wire, frozen=True):
    """apps/v1 DaemonSetSpec."""

    template: PodTemplate | None = None
    update_strategy: UpdateStrategy | None = None


class DaemonSetStatus(Wire, frozen=True):
    """apps/v1 DaemonSetStatus."""

    desired_number_scheduled: int | None = None


class DaemonSet(WireObject, frozen=True):
    """apps/v1 DaemonSet."""

    spec: DaemonSetSpec | None = None
    status: DaemonSetStatus | None = None


class ServiceCIDRSpec(Wire, frozen=True):
    """networking.k8s.io/v1 ServiceCIDRSpec (KEP-1880)."""

    cidrs: list[str] | None = None


class ServiceCIDR(WireObject, frozen=True):
    """networking.k8s.io/v1 ServiceCIDR."""

    spec: ServiceCIDRSpec | None = None


class Pod(WireObject, frozen=True):
    """core/v1 Pod: only who owns it."""
