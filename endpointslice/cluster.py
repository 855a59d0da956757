"""Node, DaemonSet, ServiceCIDR and Pod, from the wire to what is used of them."""

from collections.abc import Iterable

from endpointslice import api
from endpointslice.addresses import parse_cidr, parse_ip
from endpointslice.metadata import LEAVING_TAINT
from endpointslice.reasons import Converted, Reason, describe, name_object, skip_object
from endpointslice.types import (
    CIDR,
    IP,
    DaemonSet,
    DaemonSetName,
    Kind,
    Node,
    NodeName,
    Pod,
    PodName,
    ServiceCIDR,
    Skipped,
    Zone,
)

_ADDRESS_TYPES = ("InternalIP", "ExternalIP")  # in the order that kube-proxy takes a node's own address from


def convert_node(wire: api.Node, name: str) -> Converted:
    """The Node; `skipped` has its unusable addresses and pod CIDRs."""
    skipped: list[Skipped] = []
    label = name_object(Kind.NODE, name)
    spec = wire.spec or api.NodeSpec()
    status = wire.status or api.NodeStatus()
    zone = wire.metadata.labels.zone if wire.metadata.labels else None
    pod_cidrs = spec.pod_cidrs or ([spec.pod_cidr] if spec.pod_cidr else [])
    conditions = {condition.type: condition.status for condition in status.conditions or ()}
    node = Node(
        name=NodeName(name),
        zone=Zone(zone) if zone else None,
        addresses=_node_addresses(status.addresses or [], label, skipped),
        pod_cidrs=_cidrs("spec.podCIDRs", pod_cidrs, label, skipped),
        ready=not conditions or conditions.get("Ready") == "True",
        leaving=bool(wire.metadata.deletion_timestamp)
        or any(taint.key == LEAVING_TAINT for taint in spec.taints or ()),
    )
    return Converted(node, tuple(skipped))


def convert_daemon_set(wire: api.DaemonSet, name: str) -> Converted:
    """The DaemonSet, as far as the same-node rule reads it."""
    spec = wire.spec or api.DaemonSetSpec()
    metadata = spec.template.metadata if spec.template else None
    labels = (metadata.labels if metadata else None) or {}
    rolling = spec.update_strategy.rolling_update if spec.update_strategy else None
    most = rolling.max_unavailable if rolling else None
    daemon_set = DaemonSet(
        name=DaemonSetName(name),
        template_labels=frozenset(labels.items()),
        desired=wire.status.desired_number_scheduled if wire.status else None,
        max_unavailable="1" if most is None else str(most),
    )
    return Converted(daemon_set)


def convert_service_cidr(wire: api.ServiceCIDR, name: str) -> Converted:
    """The ServiceCIDR, or None if it holds no usable range."""
    skipped: list[Skipped] = []
    cidrs = (wire.spec.cidrs if wire.spec else None) or []
    usable = _cidrs("spec.cidrs", cidrs, name_object(Kind.SERVICE_CIDR, name), skipped)
    if usable:
        return Converted(ServiceCIDR(name, usable), tuple(skipped))
    nothing = skip_object(Kind.SERVICE_CIDR, name, Reason.NO_CIDR)
    return Converted(None, (*skipped, *nothing.skipped))


def convert_pod(wire: api.Pod, name: str) -> Converted:
    """The Pod's owner: the one that controls it, if that is a DaemonSet of apps/v1."""
    namespace = name.partition("/")[0]
    owner = next((owner for owner in wire.metadata.owner_references or () if owner.controller), None)
    owned = owner is not None and owner.kind == Kind.DAEMON_SET and owner.api_version.startswith("apps/")
    daemon_set = DaemonSetName(f"{namespace}/{owner.name}") if owner is not None and owned else None
    return Converted(Pod(PodName(name), wire.metadata.uid or "", daemon_set))


def _node_addresses(wires: list[api.NodeAddress], label: str, skipped: list[Skipped]) -> tuple[IP, ...]:
    """Every internal address, then every external one; host names are left out."""
    found: dict[IP, None] = {}
    for wanted in _ADDRESS_TYPES:
        for index, wire in enumerate(wires):
            if wire.type != wanted:
                continue
            ip = parse_ip(wire.address)
            if ip is None:
                detail = describe(f"status.addresses[{index}]", wire.address)
                skipped.append(Skipped(label, Reason.BAD_ADDRESS, detail))
            else:
                found[ip] = None
    return tuple(found)


def _cidrs(field: str, texts: Iterable[str], label: str, skipped: list[Skipped]) -> tuple[CIDR, ...]:
    found: dict[CIDR, None] = {}
    for index, text in enumerate(texts):
        cidr = parse_cidr(text)
        if cidr is None:
            skipped.append(Skipped(label, Reason.BAD_CIDR, describe(f"{field}[{index}]", text)))
        else:
            found[cidr] = None
    return tuple(found)
