"""ServiceL2Status as the API has it: our own kind, beside the Service, and metallb.io's, in the pools' namespace.

Ours belongs to its Service, so that the API server takes it away with it. MetalLB's can't: it is in another namespace;
and its status has no addresses, so they stand in an annotation. An object's name follows from the Service and the
node, so there are never two for them. No I/O.
"""

import hashlib
from typing import Any, NamedTuple

import msgspec

from endpointslice.metadata import Wire
from endpointslice.types import IP, NodeName, ServiceName
from proxy.l2status.types import Address, Entry, Stored, Stranger

PLURAL = "servicel2statuses"
_ADDRESSES = "closeby.dev/addresses"
_NAME_BYTES = 8
_LABEL_LENGTH = 63


class Dialect(NamedTuple):
    """One of the two kinds."""

    group: str
    version: str
    namespace: str = ""  # where all of them are; "": in their Services' own

    @property
    def whole(self) -> bool:
        """Whether its schema is ours: with addresses and conflicts, and its status is written with the object."""
        return not self.namespace

    @property
    def label(self) -> str:
        """The prefix of its labels' names."""
        return self.group


OWN = Dialect("closeby.dev", "v1beta1")


def metallb(namespace: str) -> Dialect:
    """MetalLB's, in the namespace of its pools."""
    return Dialect("metallb.io", "v1beta1", namespace)


def object_name(service: ServiceName, node: NodeName) -> str:
    """The same for everybody."""
    return "l2-" + hashlib.sha256(f"{service} {node}".encode()).hexdigest()[: 2 * _NAME_BYTES]


def list_path(dialect: Dialect) -> str:
    """Where all of them are listed."""
    inside = f"namespaces/{dialect.namespace}/" if dialect.namespace else ""
    return f"/apis/{dialect.group}/{dialect.version}/{inside}{PLURAL}"


def object_path(dialect: Dialect, entry: Entry) -> str:
    """Of the one object."""
    namespace = dialect.namespace or entry.service.partition("/")[0]
    name = object_name(entry.service, entry.node)
    return f"/apis/{dialect.group}/{dialect.version}/namespaces/{namespace}/{PLURAL}/{name}"


def select_node(dialect: Dialect, node: NodeName) -> str:
    """A label selector of the node's objects, and perhaps of others whose names begin so."""
    return f"{dialect.label}/node={_label_value(node)}"


def select_services(dialect: Dialect, services: list[ServiceName]) -> str:
    """A label selector of these Services' objects, and of namesakes in other namespaces."""
    names = sorted({service.partition("/")[2] for service in services})
    return f"{dialect.label}/service-name in ({','.join(names)})"


def narrow(dialect: Dialect, entry: Entry | None) -> Entry | None:
    """What of it the kind has room for."""
    if entry is None or dialect.whole:
        return entry
    return msgspec.structs.replace(entry, conflicts=()) if entry.addresses else None


def render_object(dialect: Dialect, entry: Entry, uid: str, version: str = "") -> dict[str, Any]:
    """For a server-side apply; `uid`: the Service's; `version`: only while the object has that one."""
    namespace, _slash, name = entry.service.partition("/")
    metadata: dict[str, Any] = {
        "name": object_name(entry.service, entry.node),
        "namespace": dialect.namespace or namespace,
        "labels": {
            f"{dialect.label}/node": _label_value(entry.node),
            f"{dialect.label}/service-name": name,
            f"{dialect.label}/service-namespace": namespace,
        },
    }
    if version:
        metadata["resourceVersion"] = version
    status: dict[str, Any] = {
        "node": entry.node,
        "serviceName": name,
        "serviceNamespace": namespace,
        "interfaces": [{"name": interface} for interface in _interfaces(entry)],
    }
    if dialect.whole:
        status["addresses"] = [address._asdict() for address in entry.addresses]
        status["conflicts"] = [stranger._asdict() for stranger in entry.conflicts]
        if uid:
            owner = {"apiVersion": "v1", "kind": "Service", "name": name, "uid": uid}
            metadata["ownerReferences"] = [owner]
    else:
        metadata["annotations"] = {_ADDRESSES: ",".join(f"{ip}={interface}" for ip, interface in entry.addresses)}
    kind = {"apiVersion": f"{dialect.group}/{dialect.version}", "kind": "ServiceL2Status"}
    return {**kind, "metadata": metadata, "status": status}


def _interfaces(entry: Entry) -> list[str]:
    return sorted({address.interface for address in entry.addresses})


def _label_value(node: NodeName) -> str:
    """A label's value is shorter than a Node's name may be."""
    return node[:_LABEL_LENGTH].rstrip("-._")


class _Metadata(Wire, frozen=True):
    name: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Status(Wire, frozen=True):
    node: str = ""
    service_name: str = ""
    service_namespace: str = ""
    addresses: list[dict[str, str]] | None = None
    conflicts: list[dict[str, str]] | None = None


class _Object(Wire, frozen=True):
    metadata: _Metadata
    status: _Status | None = None


class _ListMetadata(Wire, frozen=True):
    continue_token: str | None = msgspec.field(default=None, name="continue")


class _List(Wire, frozen=True):
    metadata: _ListMetadata
    items: list[_Object]


class Page(NamedTuple):
    """A part of a list."""

    stored: tuple[Stored, ...]
    following: str  # the token of the next part; "": this was the last


_DECODER = msgspec.json.Decoder(_List)


def decode_page(dialect: Dialect, body: bytes) -> Page:
    """The objects that are ours by their names; msgspec.DecodeError if the body is no list."""
    page = _DECODER.decode(body)
    found = (_decode(dialect, one) for one in page.items)
    return Page(tuple(one for one in found if one is not None), page.metadata.continue_token or "")


def _decode(dialect: Dialect, found: _Object) -> Stored | None:
    status = found.status or _Status()
    service = ServiceName(f"{status.service_namespace}/{status.service_name}")
    entry = Entry(service, NodeName(status.node))
    if found.metadata.name != object_name(service, entry.node):
        return None
    if dialect.whole:
        addresses = tuple(_address(one) for one in status.addresses or ())
        conflicts = tuple(Stranger(*_ip_and(one), one.get("mac", "")) for one in status.conflicts or ())
        entry = Entry(service, entry.node, addresses, conflicts)
    else:
        text = (found.metadata.annotations or {}).get(_ADDRESSES, "")
        parts = (part.partition("=") for part in text.split(",") if part)
        entry = Entry(service, entry.node, tuple(Address(IP(ip), interface) for ip, _is, interface in parts))
    return Stored(entry, found.metadata.resource_version)


def _address(found: dict[str, str]) -> Address:
    return Address(*_ip_and(found))


def _ip_and(found: dict[str, str]) -> tuple[IP, str]:
    return IP(found.get("ip", "")), found.get("interface", "")
