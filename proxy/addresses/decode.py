"""Bytes of the API to changes of what addresses depend on. A broken object costs itself alone, and says why."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from endpointslice.decode import UNREADABLE, DecodeError, WatchLine
from endpointslice.metadata import Event, ObjectList, Status
from proxy.addresses import wire
from proxy.addresses.accept import Read
from proxy.addresses.pools import check_advertisement, check_pool, check_spread
from proxy.addresses.services import convert_conflicts, convert_namespace, convert_node, convert_service, find_condition
from proxy.addresses.types import (
    Advertisement,
    Condition,
    Conflicts,
    Kind,
    Namespace,
    Node,
    NodeState,
    PoolStatus,
    Problem,
    Service,
)

USABLE = "closeby.dev/Usable"  # the condition's type of a pool


class PoolObject(msgspec.Struct, frozen=True):
    """An IPAddressPool as the API has it."""

    read: Read
    status: PoolStatus | None = None  # None: nobody wrote one yet
    usable: Condition | None = None


class AdvertisementObject(msgspec.Struct, frozen=True):
    """An L2Advertisement as the API has it."""

    advertisement: Advertisement | None
    problems: tuple[Problem, ...] = ()
    remarks: tuple[Problem, ...] = ()  # it is used all the same, but for these parts


Object = Service | Namespace | Node | NodeState | PoolObject | AdvertisementObject | Conflicts
_NAMESPACED = frozenset({Kind.SERVICE, Kind.L2_STATUS})  # everywhere; other kinds are read in one namespace, if in any
Readers = Mapping[Kind, Callable[[bytes, str], Object]]


class Change(NamedTuple):
    """One object as the API has it now."""

    kind: Kind
    name: str  # "namespace/name" of a Service and a ServiceL2Status; else the name alone
    object: Object | None  # None: deleted; or of a type that can't be read, and then `problem` says why
    uid: str = ""
    version: str = ""  # resourceVersion
    problem: str = ""


class ListedChanges(NamedTuple):
    """One page of a list."""

    changes: tuple[Change, ...]
    resource_version: str


_PAGES = msgspec.json.Decoder(ObjectList[msgspec.Raw])
_NAMED = msgspec.json.Decoder(wire.WireObject)
_EVENTS = msgspec.json.Decoder(Event)
_STATUSES = msgspec.json.Decoder(Status)


def decode_page(kind: Kind, body: bytes, readers: Readers | None = None) -> ListedChanges:
    """One page of a list. Raises DecodeError if it isn't one."""
    try:
        listed = _PAGES.decode(body)
    except UNREADABLE as error:
        raise DecodeError(str(error)) from error
    if listed.kind and listed.kind != f"{kind}List":
        raise DecodeError(f"a {listed.kind}, not a {kind}List")
    changes = tuple(decode_object(kind, bytes(raw), readers) for raw in listed.items or ())
    return ListedChanges(changes, listed.metadata.resource_version or "")


def decode_line(kind: Kind, line: bytes, readers: Readers | None = None) -> tuple[WatchLine, Change | None] | None:
    """One event of a watch; None if the line isn't a complete one."""
    try:
        event = _EVENTS.decode(line)
        if event.type == "ERROR":
            status = _STATUSES.decode(event.object)
            return WatchLine(event.type, None, "", status.code or 0, status.message or ""), None
        metadata = _NAMED.decode(event.object).metadata
    except UNREADABLE:
        return None
    told = WatchLine(event.type, None, metadata.resource_version or "")
    if event.type == "DELETED":
        return told, Change(kind, _full_name(kind, metadata), None, metadata.uid or "", told.resource_version)
    if event.type in {"ADDED", "MODIFIED"}:
        return told, decode_object(kind, bytes(event.object), readers)
    return told, None


def decode_object(kind: Kind, body: bytes, readers: Readers | None = None) -> Change:
    """One object, as a GET or a PATCH returns it; `readers`: in place of the controller's own."""
    try:
        metadata = _NAMED.decode(body).metadata
    except UNREADABLE as error:
        return Change(kind, "(unnamed)", None, problem=str(error))
    name = _full_name(kind, metadata)
    problem, found = "", None
    try:
        found = (readers or READERS)[kind](body, name)
    except UNREADABLE as error:
        problem = str(error)
        if kind is Kind.POOL:  # it is there, and somebody should be told
            found = PoolObject(Read(None, (Problem("", problem),)))
        elif kind is Kind.ADVERTISEMENT:
            found = AdvertisementObject(None, (Problem("", problem),))
    return Change(kind, name, found, metadata.uid or "", metadata.resource_version or "", problem)


def convert_pool(pool: wire.Pool) -> PoolObject:
    """The pool with what is wrong with it."""
    problems: list[Problem] = []
    checked = check_pool(pool, problems)
    status = pool.status
    counts = None
    if status is not None and status.available_ipv4 is not None:
        parts = (status.assigned_ipv4, status.assigned_ipv6, status.available_ipv4, status.available_ipv6)
        counts = PoolStatus(*(part or 0 for part in parts))
    usable = find_condition((status.conditions if status else None) or (), USABLE)
    return PoolObject(Read(checked, tuple(problems)), counts, usable)


def convert_advertisement(advertisement: wire.Advertisement) -> AdvertisementObject:
    """The advertisement with what is wrong with it."""
    problems: list[Problem] = []
    checked = check_advertisement(advertisement, problems)
    return AdvertisementObject(checked, tuple(problems), check_spread(advertisement))


def _full_name(kind: Kind, metadata: wire.Metadata) -> str:
    return f"{metadata.namespace or 'default'}/{metadata.name}" if kind in _NAMESPACED else metadata.name


def read_lines(
    kind: Kind, lines: Iterator[bytes], readers: Readers | None = None
) -> tuple[list[Change], str, tuple[int, str] | None]:
    """The changes up to the first line that ends the stream, the version to resume from, and why it ended."""
    changes: list[Change] = []
    version = ""
    for line in lines:
        read = decode_line(kind, line, readers)
        if read is None:
            return changes, version, (0, "a line that is no event")
        told, change = read
        if told.type == "ERROR":
            return changes, version, (told.code, told.message)
        version = told.resource_version or version
        if change is not None:
            changes.append(change)
    return changes, version, None


_SERVICES = msgspec.json.Decoder(wire.Service)
_NAMESPACES = msgspec.json.Decoder(wire.Namespace)
_NODES = msgspec.json.Decoder(wire.Node)
_POOLS = msgspec.json.Decoder(wire.Pool)
_ADVERTISEMENTS = msgspec.json.Decoder(wire.Advertisement)
_L2_STATUSES = msgspec.json.Decoder(wire.L2Status)

READERS: Readers = {
    Kind.SERVICE: lambda body, name: convert_service(_SERVICES.decode(body), name),
    Kind.NAMESPACE: lambda body, name: convert_namespace(_NAMESPACES.decode(body), name),
    Kind.NODE: lambda body, name: convert_node(_NODES.decode(body), name),
    Kind.POOL: lambda body, _name: convert_pool(_POOLS.decode(body)),
    Kind.ADVERTISEMENT: lambda body, _name: convert_advertisement(_ADVERTISEMENTS.decode(body)),
    Kind.L2_STATUS: lambda body, _name: convert_conflicts(_L2_STATUSES.decode(body)),
}
