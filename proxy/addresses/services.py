"""Service, Namespace and Node, from the wire to what is used of them for addresses (core/v1)."""

from collections.abc import Iterable

from endpointslice.addresses import family_of, parse_ip
from endpointslice.types import IP, NodeName, ServiceName
from proxy.addresses import wire
from proxy.addresses.types import Condition, Conflicts, DualStack, Namespace, Node, Service

GRANTED = "closeby.dev/AddressGranted"  # the condition's type
CONFLICT = "closeby.dev/AddressConflict"  # another, which stands only while there is one
PREFIXES = ("closeby.dev/", "metallb.io/", "metallb.universe.tf/")  # of annotations; the last is metallb.io's old one
POOL_ANNOTATION = "address-pool"
IPS_ANNOTATION = "loadBalancerIPs"
SHARING_ANNOTATION = "allow-shared-ip"
_ANNOTATIONS = frozenset(
    prefix + name for prefix in PREFIXES for name in (POOL_ANNOTATION, IPS_ANNOTATION, SHARING_ANNOTATION)
)
_POLICIES = {policy.value: policy for policy in DualStack}


def convert_service(service: wire.Service, name: str) -> Service:
    """The Service. What a request in it says is judged later: a wrong one is its owner's to mend."""
    spec, metadata = service.spec, service.metadata
    status = service.status or wire.ServiceStatus()
    ingress = (status.load_balancer or wire.LoadBalancerStatus()).ingress or ()
    return Service(
        name=ServiceName(name),
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        created=metadata.creation_timestamp or "",
        wants=spec.type == "LoadBalancer",
        load_balancer_class=spec.load_balancer_class,
        families=tuple(family_of(ip) for ip in _addresses(spec.cluster_ips or (spec.cluster_ip,))),
        dual_stack=_POLICIES.get(spec.ip_family_policy or "", DualStack.SINGLE),
        backends=_backends(spec),
        ports=frozenset((port.protocol or "TCP", port.port or 0) for port in spec.ports or ()),
        labels=frozenset((metadata.labels or {}).items()),
        annotations={key: text for key, text in (metadata.annotations or {}).items() if key in _ANNOTATIONS},
        load_balancer_ip=spec.load_balancer_ip or "",
        held=_addresses(one.ip for one in ingress),
        granted=find_condition(status.conditions or (), GRANTED),
        conflict=find_condition(status.conditions or (), CONFLICT),
    )


def convert_conflicts(found: wire.L2Status) -> Conflicts:
    """The Service, and who else answers for its addresses."""
    status = found.status or wire.L2StatusStatus()
    strangers = tuple(sorted((one.ip, one.mac) for one in status.conflicts or ()))
    return Conflicts(ServiceName(f"{status.service_namespace}/{status.service_name}"), strangers)


def convert_namespace(namespace: wire.Namespace, name: str) -> Namespace:
    """The Namespace."""
    return Namespace(name, frozenset((namespace.metadata.labels or {}).items()))


def convert_node(node: wire.Node, name: str) -> Node:
    """The Node; addresses that are names (Hostname, InternalDNS) are left out."""
    found = (node.status or wire.NodeStatus()).addresses or ()
    return Node(NodeName(name), frozenset(_addresses(one.address for one in found)))


def _addresses(texts: Iterable[str | None]) -> tuple[IP, ...]:
    parsed = (parse_ip(text) for text in texts if text)
    return tuple(dict.fromkeys(ip for ip in parsed if ip is not None))


def _backends(spec: wire.ServiceSpec) -> str:
    """Who answers where only the pods' own nodes do: two Services that share an address must agree on it."""
    if spec.external_traffic_policy != "Local":
        return ""
    return ",".join(f"{key}={value}" for key, value in sorted((spec.selector or {}).items())) or "(no selector)"


def find_condition(conditions: Iterable[wire.Condition], kind: str) -> Condition | None:
    """The condition of a type, where the object has it."""
    for one in conditions:
        if one.type == kind:
            return Condition(one.status, one.reason, one.message, one.last_transition_time or "")
    return None
