"""EndpointSlice, from the wire to what is used of it (discovery.k8s.io/v1: KEP-752, KEP-1672, KEP-2433, KEP-3015)."""

import functools
import sys

import msgspec

from endpointslice import api
from endpointslice.addresses import parse_ip
from endpointslice.metadata import is_headless_services
from endpointslice.reasons import Converted, Reason, describe, name_object, skip_object
from endpointslice.services import MAX_PORT, PROTOCOLS
from endpointslice.types import (
    Family,
    Kind,
    NodeName,
    PodName,
    Protocol,
    ServiceName,
    Skipped,
    Slice,
    SliceEndpoint,
    SliceName,
    SlicePort,
    Zone,
)

_FAMILIES = {family.value: family for family in Family}
_NO_CONDITIONS = api.Conditions()
_NO_NAMES: frozenset[str] = frozenset()


def convert_slice(wire: api.EndpointSlice, name: str) -> Converted:
    """The slice, or None with its reason; `skipped` has its unusable ports and endpoints, too."""
    unused = _why_unused(wire)
    if unused is not None:
        return skip_object(Kind.ENDPOINT_SLICE, name, *unused)
    metadata = wire.metadata
    family = _FAMILIES[wire.address_type or ""]
    namespace = name.partition("/")[0]
    skipped: list[Skipped] = []
    label = name_object(Kind.ENDPOINT_SLICE, name)
    if wire.endpoints and not wire.ports:
        skipped.append(Skipped(label, Reason.ALL_PORTS, describe("ports", wire.ports)))
    service_name = metadata.labels.service_name if metadata.labels else None
    converted = Slice(
        name=SliceName(name),
        service=ServiceName(sys.intern(f"{namespace}/{service_name}")),
        family=family,
        ports=_ports(wire.ports or [], label, skipped),
        endpoints=_endpoints(wire.endpoints or [], (family, namespace), label, skipped),
        triggered=(metadata.annotations.triggered if metadata.annotations else None) or "",
    )
    return Converted(converted, tuple(skipped))


def with_api_defaults(wire: api.EndpointSlice) -> api.EndpointSlice:
    """The slice as an API server would have stored it: a port without a name has the name ""."""
    if not wire.ports or all(port.name is not None for port in wire.ports):
        return wire
    ports = [msgspec.structs.replace(port, name=port.name or "") for port in wire.ports]
    return msgspec.structs.replace(wire, ports=ports)


def _why_unused(wire: api.EndpointSlice) -> tuple[Reason, str] | None:
    labels = wire.metadata.labels
    if is_headless_services(wire.metadata):
        return Reason.HEADLESS_LABEL, ""
    if labels is None or not labels.service_name:
        return Reason.NO_SERVICE_NAME, ""
    if wire.address_type in _FAMILIES:
        return None
    reason = Reason.FQDN if wire.address_type == "FQDN" else Reason.UNKNOWN_ADDRESS_TYPE
    return reason, describe("addressType", wire.address_type)


def _ports(wires: list[api.EndpointPort], label: str, skipped: list[Skipped]) -> tuple[SlicePort, ...]:
    """The usable ports (m4-m6); a slice may give one name several numbers (m7)."""
    ports: list[SlicePort] = []
    for index, wire in enumerate(wires):
        port = _port(wire.name, wire.protocol, wire.port)
        if isinstance(port, SlicePort):
            ports.append(port)
        else:
            detail = describe(f"ports[{index}]", (wire.name, wire.protocol, wire.port))
            skipped.append(Skipped(f"{label} port {index}", port, detail))
    return _shared_ports(tuple(ports))


@functools.lru_cache(maxsize=1024)
def _port(name: str | None, protocol_text: str | None, number: int | None) -> SlicePort | Reason:
    """One port. A missing protocol is TCP (m6)."""
    protocol = PROTOCOLS.get(protocol_text or Protocol.TCP)
    if name is None:
        return Reason.NO_PORT_NAME
    if not number:
        return Reason.NO_PORT_NUMBER
    if protocol is None:
        return Reason.UNKNOWN_PROTOCOL
    return SlicePort(name, protocol, number) if 0 < number <= MAX_PORT else Reason.BAD_PORT


@functools.lru_cache(maxsize=1024)
def _shared_ports(ports: tuple[SlicePort, ...]) -> tuple[SlicePort, ...]:
    """The same value for equal ports: most slices have the same few."""
    return ports


def _endpoints(
    wires: list[api.Endpoint], around: tuple[Family, str], label: str, skipped: list[Skipped]
) -> tuple[SliceEndpoint, ...]:
    """The usable endpoints; `around` is the slice's family and namespace. Only addresses[0] is read (m8)."""
    family, namespace = around
    wants_colon = family is Family.IPV6
    endpoints: list[SliceEndpoint] = []
    for index, wire in enumerate(wires):
        addresses = wire.addresses
        if not addresses:
            skipped.append(Skipped(label, Reason.NO_ADDRESS, describe(f"endpoints[{index}].addresses", addresses)))
            continue
        ip = parse_ip(addresses[0])
        if ip is None or (":" in ip) is not wants_colon:
            reason = Reason.BAD_ADDRESS if ip is None else Reason.OTHER_FAMILY
            detail = describe(f"endpoints[{index}].addresses[0]", addresses[0])
            skipped.append(Skipped(label, reason, detail))
            continue
        conditions = wire.conditions or _NO_CONDITIONS
        hints = wire.hints
        pod, pod_uid = _target_pod(wire.target_ref, namespace)
        endpoints.append(
            SliceEndpoint(
                ip,
                conditions.ready is not False,  # m9
                conditions.serving is not False,  # m10
                conditions.terminating is True,  # m11
                NodeName(sys.intern(wire.node_name)) if wire.node_name else None,
                Zone(sys.intern(wire.zone)) if wire.zone else None,
                _names(hints.for_zones) if hints else _NO_NAMES,  # type: ignore[arg-type]  # names of zones
                _names(hints.for_nodes) if hints else _NO_NAMES,  # type: ignore[arg-type]  # names of nodes
                pod,
                pod_uid,
            )
        )
    return tuple(endpoints)


def _target_pod(target: api.ObjectReference | None, namespace: str) -> tuple[PodName | None, str]:
    if target is None or target.kind != Kind.POD or not target.name:
        return None, ""
    return PodName(f"{target.namespace or namespace}/{target.name}"), target.uid or ""


def _names(hints: list[api.Hint] | None) -> frozenset[str]:
    """The hinted names; no list, an empty one and empty names are no hint (m16)."""
    return _shared_names(*[hint.name for hint in hints if hint.name]) if hints else _NO_NAMES


@functools.lru_cache(maxsize=8192)
def _shared_names(*names: str) -> frozenset[str]:
    """The same value for equal hints: a zone's name stands in thousands of endpoints."""
    return frozenset(map(sys.intern, names))
