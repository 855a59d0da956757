"""Bytes of the API, or parsed manifests, to Changed objects.

A list's page is decoded at one go into typed values; only when that fails are its items decoded one by one, so that a
broken object costs itself and nothing else.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import msgspec

from endpointslice import api
from endpointslice.cluster import convert_daemon_set, convert_node, convert_pod, convert_service_cidr
from endpointslice.metadata import Continued, Event, Metadata, ObjectList, Status, WireObject
from endpointslice.reasons import Converted, Reason, skip_object
from endpointslice.services import convert_service
from endpointslice.slices import convert_slice, with_api_defaults
from endpointslice.snapshot import Changed, Listed
from endpointslice.types import Kind

__all__ = [
    "UNREADABLE",
    "Changed",
    "DecodeError",
    "Listed",
    "Page",
    "WatchLine",
    "convert_document",
    "decode_continue",
    "decode_list",
    "decode_object",
    "decode_watch_line",
]

W = TypeVar("W", bound=WireObject)

_UNNAMED = "(unnamed)"
_NAMESPACE = "default"  # of a manifest that names none
_CLUSTER_SCOPED = frozenset({Kind.NODE, Kind.SERVICE_CIDR})
_GROUPS: Mapping[Kind, str] = {
    Kind.SERVICE: "",
    Kind.ENDPOINT_SLICE: "discovery.k8s.io",
    Kind.NODE: "",
    Kind.DAEMON_SET: "apps",
    Kind.SERVICE_CIDR: "networking.k8s.io",
    Kind.POD: "",
}
_KINDS: Mapping[str, Kind] = {kind.value: kind for kind in Kind}
_RAW_PAGES = msgspec.json.Decoder(ObjectList[msgspec.Raw])
_CONTINUED = msgspec.json.Decoder(Continued)
_NAMED = msgspec.json.Decoder(WireObject)
_EVENTS = msgspec.json.Decoder(Event)
_STATUSES = msgspec.json.Decoder(Status)
UNREADABLE = (msgspec.DecodeError, RecursionError)  # what msgspec raises on any bytes; the second where nested too deep


class DecodeError(ValueError):
    """A body as a whole isn't a list of the kind asked for."""


class Page(NamedTuple):
    """One page of a list."""

    changes: tuple[Changed, ...]
    resource_version: str
    continue_token: str  # "": the last page


class WatchLine(NamedTuple):
    """One event of a watch."""

    type: str  # ADDED, MODIFIED, DELETED, BOOKMARK or ERROR
    change: Changed | None  # of the first three
    resource_version: str
    code: int = 0  # of an ERROR's Status
    message: str = ""


class _Source(NamedTuple, Generic[W]):
    """How objects of one kind are read."""

    kind: Kind
    wire: type[W]
    pages: msgspec.json.Decoder[ObjectList[W]]
    items: msgspec.json.Decoder[W]
    convert: Callable[[W, str], Converted]
    with_defaults: Callable[[W], W]


class _Reader(NamedTuple):
    """The ways to read one kind, with the wire's type closed in."""

    page: Callable[[bytes], Page]
    item: Callable[[msgspec.Raw, str], Changed]
    document: Callable[[object], Changed]


def decode_list(kind: Kind, body: bytes) -> Page:
    """One page of a list; a broken item is there with `object` None. Raises DecodeError if `body` isn't such a list."""
    return _READERS[kind].page(body)


def decode_continue(body: bytes) -> str:
    """Only where the next page of a list begins, in a tenth of the time of `decode_list`; "": nowhere.

    Raises DecodeError.
    """
    try:
        return _CONTINUED.decode(body).metadata.continue_token or ""
    except UNREADABLE as error:
        raise DecodeError(str(error)) from error


def decode_object(kind: Kind, body: bytes) -> Changed:
    """One object, as a GET returns it; `object` is None if it is broken, or not even JSON."""
    return _READERS[kind].item(msgspec.Raw(body), _UNNAMED)


def decode_watch_line(kind: Kind, line: bytes) -> WatchLine | None:
    """One event; None if the line isn't a complete one, as when the stream was cut."""
    try:
        event = _EVENTS.decode(line)
    except UNREADABLE:
        return None
    if event.type == "ERROR":
        return _decode_error(event)
    metadata = _decode_metadata(event.object)
    version = (metadata.resource_version if metadata else None) or ""
    change: Changed | None = None
    if event.type in {"ADDED", "MODIFIED"}:
        change = _READERS[kind].item(event.object, _UNNAMED)
    elif event.type == "DELETED":
        change = Changed(kind, _full_name(kind, metadata, _UNNAMED), None)
    return WatchLine(event.type, change, version)


def convert_document(document: object) -> tuple[Changed, ...]:
    """What a parsed YAML or JSON document holds; () for kinds that aren't read. Lists are expanded, nested ones too.

    API defaults are applied where an API server would have (the name of a slice's port, the namespace). Never raises:
    a broken object comes back with `object` None and a detail that names the field.
    """
    try:
        plain = msgspec.to_builtins(document)
    except (TypeError, ValueError, RecursionError) as error:  # not plain data, or data that contains itself
        kind = _kind_of(document.get("kind")) if isinstance(document, dict) else None
        return () if kind is None else (_broken(kind, _UNNAMED, str(error)),)
    return tuple(_convert_plain(plain, None))


def _convert_plain(document: object, item_kind: str | None) -> Iterator[Changed]:
    """`item_kind` is what a typed list says of items that don't say it themselves."""
    if not isinstance(document, dict):
        return
    kind_text = document.get("kind", item_kind)
    items = document.get("items")
    if isinstance(kind_text, str) and kind_text.endswith("List") and isinstance(items, list):
        for item in items:
            yield from _convert_plain(item, kind_text.removesuffix("List"))
        return
    kind = _kind_of(kind_text)
    version = document.get("apiVersion")
    if kind is None or (version and str(version).rpartition("/")[0] != _GROUPS[kind]):
        return
    yield _READERS[kind].document(document)


def _kind_of(text: object) -> Kind | None:
    return _KINDS.get(text) if isinstance(text, str) else None


def _decode_page(source: _Source[W], body: bytes) -> Page:
    try:
        listed = source.pages.decode(body)
    except (msgspec.ValidationError, RecursionError):
        return _decode_broken_page(source, body)
    except msgspec.DecodeError as error:
        raise DecodeError(str(error)) from error
    changes = [_convert(source, wire, f"items[{index}]") for index, wire in enumerate(listed.items or ())]
    return _page(source.kind, listed, changes)


def _decode_broken_page(source: _Source[W], body: bytes) -> Page:
    """The page, item by item."""
    try:
        listed = _RAW_PAGES.decode(body)
    except UNREADABLE as error:
        raise DecodeError(str(error)) from error
    changes = [_decode_item(source, raw, f"items[{index}]") for index, raw in enumerate(listed.items or ())]
    return _page(source.kind, listed, changes)


def _page(kind: Kind, listed: ObjectList[W] | ObjectList[msgspec.Raw], changes: Iterable[Changed]) -> Page:
    if listed.kind and listed.kind != f"{kind}List":
        raise DecodeError(f"a {listed.kind}, not a {kind}List")
    metadata = listed.metadata
    return Page(tuple(changes), metadata.resource_version or "", metadata.continue_token or "")


def _decode_item(source: _Source[W], raw: msgspec.Raw, fallback: str) -> Changed:
    try:
        wire = source.items.decode(raw)
    except UNREADABLE as error:
        name = _full_name(source.kind, _decode_metadata(raw), fallback)
        return _broken(source.kind, name, str(error))
    return _convert(source, wire, fallback)


def _convert_item(source: _Source[W], document: object) -> Changed:
    try:
        wire = msgspec.convert(document, source.wire)
    except msgspec.ValidationError as error:
        try:
            metadata = msgspec.convert(document, WireObject).metadata
        except msgspec.ValidationError:
            return _broken(source.kind, _UNNAMED, str(error))
        return _broken(source.kind, _full_name(source.kind, metadata, _UNNAMED), str(error))
    return _convert(source, source.with_defaults(wire), _UNNAMED)


def _convert(source: _Source[W], wire: W, fallback: str) -> Changed:
    name = _full_name(source.kind, wire.metadata, fallback)
    if not wire.metadata.name:
        return _broken(source.kind, name, "metadata.name: none given")
    converted = source.convert(wire, name)
    return Changed(source.kind, name, converted.object, converted.skipped)


def _decode_metadata(raw: msgspec.Raw) -> Metadata | None:
    """The metadata of an object that may be broken elsewhere; None if it is broken itself."""
    try:
        return _NAMED.decode(raw).metadata
    except UNREADABLE:
        return None


def _full_name(kind: Kind, metadata: Metadata | None, fallback: str) -> str:
    """The text "namespace/name" or "name"; shared, since a Service's stands in its slices as well."""
    if metadata is None or not metadata.name:
        return fallback
    if kind in _CLUSTER_SCOPED:
        return sys.intern(metadata.name)
    return sys.intern(f"{metadata.namespace or _NAMESPACE}/{metadata.name}")


def _broken(kind: Kind, name: str, detail: str) -> Changed:
    return Changed(kind, name, None, skip_object(kind, name, Reason.BAD_OBJECT, detail).skipped)


def _decode_error(event: Event) -> WatchLine:
    """An ERROR; its Status tells, among others, that the resource version is too old (410)."""
    try:
        status = _STATUSES.decode(event.object)
    except UNREADABLE as error:
        return WatchLine(event.type, None, "", 0, str(error))
    return WatchLine(event.type, None, "", status.code or 0, status.message or "")


def _as_it_is(wire: W) -> W:
    return wire


def _reader(
    kind: Kind,
    pages: tuple[type[W], msgspec.json.Decoder[ObjectList[W]]],
    convert: Callable[[W, str], Converted],
    with_defaults: Callable[[W], W] = _as_it_is,
) -> _Reader:
    """`pages` comes with its decoder, because a generic list can't be named by a variable type."""
    wire, decoder = pages
    source = _Source(kind, wire, decoder, msgspec.json.Decoder(wire), convert, with_defaults)
    return _Reader(partial(_decode_page, source), partial(_decode_item, source), partial(_convert_item, source))


_READERS: Mapping[Kind, _Reader] = {
    Kind.SERVICE: _reader(Kind.SERVICE, (api.Service, msgspec.json.Decoder(ObjectList[api.Service])), convert_service),
    Kind.ENDPOINT_SLICE: _reader(
        Kind.ENDPOINT_SLICE,
        (api.EndpointSlice, msgspec.json.Decoder(ObjectList[api.EndpointSlice])),
        convert_slice,
        with_api_defaults,
    ),
    Kind.NODE: _reader(Kind.NODE, (api.Node, msgspec.json.Decoder(ObjectList[api.Node])), convert_node),
    Kind.DAEMON_SET: _reader(
        Kind.DAEMON_SET, (api.DaemonSet, msgspec.json.Decoder(ObjectList[api.DaemonSet])), convert_daemon_set
    ),
    Kind.SERVICE_CIDR: _reader(
        Kind.SERVICE_CIDR, (api.ServiceCIDR, msgspec.json.Decoder(ObjectList[api.ServiceCIDR])), convert_service_cidr
    ),
    Kind.POD: _reader(Kind.POD, (api.Pod, msgspec.json.Decoder(ObjectList[api.Pod])), convert_pod),
}
