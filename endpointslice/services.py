"""Service, from the wire to what is used of it (core/v1; KEP-1860 ipMode, KEP-2086 internal policy, KEP-4444)."""

from collections.abc import Iterable

from endpointslice import api
from endpointslice.addresses import family_of, parse_cidr, parse_ip
from endpointslice.announcers import read_announcers
from endpointslice.metadata import is_other_proxys
from endpointslice.reasons import Converted, Reason, describe, name_object, skip_object
from endpointslice.types import (
    CIDR,
    IP,
    Family,
    Kind,
    Protocol,
    Service,
    ServiceName,
    ServicePort,
    Skipped,
    TrafficDistribution,
    TrafficPolicy,
)

AFFINITY_TIMEOUT_S = 10800  # the API's default
PROTOCOLS = {protocol.value: protocol for protocol in Protocol}
MAX_PORT = 65535
_DISTRIBUTIONS = {distribution.value: distribution for distribution in TrafficDistribution}
_NO_IP = "None"  # spec.clusterIP of a headless Service


def convert_service(wire: api.Service, name: str) -> Converted:
    """The Service, or None with its reason where it has no frontend at all; `skipped` has its unusable parts, too."""
    spec = wire.spec
    unused = _why_unused(wire)
    if unused is not None:
        return skip_object(Kind.SERVICE, name, unused)
    skipped: list[Skipped] = []
    label = name_object(Kind.SERVICE, name)
    cluster_ips = _cluster_ips(spec, label, skipped)
    if not cluster_ips:
        return Converted(None, (*skipped, Skipped(label, Reason.NO_CLUSTER_IP)))
    service_type = spec.type or "ClusterIP"
    external = _policy(spec.external_traffic_policy)
    checked = service_type == "LoadBalancer" and external is TrafficPolicy.LOCAL
    announcers = read_announcers(wire.metadata.annotations, label, skipped)
    service = Service(
        name=ServiceName(name),
        cluster_ips=cluster_ips,
        ports=_ports(spec.ports or (), label, skipped),
        type=service_type,
        external_ips=_addresses("spec.externalIPs", spec.external_ips or (), label, skipped),
        load_balancer_ips=(balanced := _load_balancer_ips(wire.status, label, skipped)),
        source_ranges=_source_ranges(spec.load_balancer_source_ranges or (), label, skipped),
        internal_traffic_policy=_policy(spec.internal_traffic_policy),
        external_traffic_policy=external,
        traffic_distribution=_DISTRIBUTIONS.get(spec.traffic_distribution or ""),
        affinity_timeout_s=_affinity_timeout_s(spec),
        health_check_node_port=spec.health_check_node_port or 0 if checked else 0,
        selector=frozenset((spec.selector or {}).items()),
        announce_on=announcers.only,
        prefer_nodes=announcers.preferred,
        created=wire.metadata.creation_timestamp or "",
        uid=wire.metadata.uid or "" if balanced else "",
    )
    return Converted(service, tuple(skipped))


def _why_unused(wire: api.Service) -> Reason | None:
    if is_other_proxys(wire.metadata):
        return Reason.OTHER_PROXY
    if wire.spec.type == "ExternalName":
        return Reason.EXTERNAL_NAME
    if wire.spec.cluster_ip == _NO_IP or _NO_IP in (wire.spec.cluster_ips or ()):
        return Reason.HEADLESS
    return None


def _cluster_ips(spec: api.ServiceSpec, label: str, skipped: list[Skipped]) -> tuple[IP, ...]:
    """One address per family; `ipFamilies` says whose each is, and without it an address's own form does."""
    found: dict[Family, IP] = {}
    for index, text in enumerate(spec.cluster_ips or (spec.cluster_ip,)):
        if not text:
            continue
        field = f"spec.clusterIPs[{index}]"
        ip = parse_ip(text)
        if ip is None:
            skipped.append(Skipped(label, Reason.BAD_ADDRESS, describe(field, text)))
            continue
        meant = spec.ip_families[index : index + 1] if spec.ip_families else [family_of(ip)]
        if meant != [family_of(ip)] or family_of(ip) in found:
            skipped.append(Skipped(label, Reason.OTHER_FAMILY, describe(field, text)))
            continue
        found[family_of(ip)] = ip
    return tuple(found.values())


def _ports(wires: Iterable[api.ServicePort], label: str, skipped: list[Skipped]) -> tuple[ServicePort, ...]:
    """The usable ports. Per protocol, names and numbers are unique in the API; of a manifest's doubles the first."""
    taken: set[tuple[Protocol, str | int]] = set()
    ports: list[ServicePort] = []
    for index, wire in enumerate(wires):
        field = f"spec.ports[{index}]"
        port = _port(wire)
        if isinstance(port, Reason):
            skipped.append(Skipped(label, port, describe(field, (wire.name, wire.protocol, wire.port))))
            continue
        keys: set[tuple[Protocol, str | int]] = {(port.protocol, port.name), (port.protocol, port.port)}
        if taken & keys:
            skipped.append(Skipped(label, Reason.REPEATED_PORT, describe(field, (wire.name, wire.protocol, wire.port))))
            continue
        if not 0 <= (wire.node_port or 0) <= MAX_PORT:
            skipped.append(Skipped(label, Reason.BAD_PORT, describe(f"{field}.nodePort", wire.node_port)))
        taken |= keys
        ports.append(port)
    return tuple(ports)


def _port(wire: api.ServicePort) -> ServicePort | Reason:
    protocol = PROTOCOLS.get(wire.protocol or Protocol.TCP)
    if protocol is None:
        return Reason.UNKNOWN_PROTOCOL
    if wire.port is None:
        return Reason.NO_PORT_NUMBER
    if not 0 < wire.port <= MAX_PORT:
        return Reason.BAD_PORT
    node_port = wire.node_port or 0
    return ServicePort(wire.name or "", protocol, wire.port, node_port if 0 < node_port <= MAX_PORT else 0)


def _addresses(field: str, texts: Iterable[str], label: str, skipped: list[Skipped]) -> tuple[IP, ...]:
    """The usable addresses, each once."""
    found: dict[IP, None] = {}
    for index, text in enumerate(texts):
        ip = parse_ip(text)
        if ip is None:
            skipped.append(Skipped(label, Reason.BAD_ADDRESS, describe(f"{field}[{index}]", text)))
        else:
            found[ip] = None
    return tuple(found)


def _load_balancer_ips(status: api.ServiceStatus | None, label: str, skipped: list[Skipped]) -> tuple[IP, ...]:
    """Addresses that the balancer leaves to the nodes: ipMode VIP or none (KEP-1860); the type isn't asked."""
    if status is None or status.load_balancer is None:
        return ()
    ingress = status.load_balancer.ingress or ()
    texts = [entry.ip for entry in ingress if entry.ip and entry.ip_mode in {None, "VIP"}]
    return _addresses("status.loadBalancer.ingress", texts, label, skipped)


def _source_ranges(texts: Iterable[str], label: str, skipped: list[Skipped]) -> tuple[CIDR, ...]:
    """The usable ranges; the API's validation lets spaces around them through."""
    found: dict[CIDR, None] = {}
    for index, text in enumerate(texts):
        cidr = parse_cidr(text.strip())
        if cidr is None:
            field = f"spec.loadBalancerSourceRanges[{index}]"
            skipped.append(Skipped(label, Reason.BAD_CIDR, describe(field, text)))
        else:
            found[cidr] = None
    return tuple(found)


def _policy(text: str | None) -> TrafficPolicy:
    """Absent and unknown policies are Cluster."""
    return TrafficPolicy.LOCAL if text == TrafficPolicy.LOCAL else TrafficPolicy.CLUSTER


def _affinity_timeout_s(spec: api.ServiceSpec) -> int | None:
    if spec.session_affinity != "ClientIP":
        return None
    config = spec.session_affinity_config
    client_ip = config.client_ip if config else None
    return (client_ip.timeout_seconds if client_ip else None) or AFFINITY_TIMEOUT_S
