"""The Snapshot: all objects that decisions read, and how events change it.

Event in, new Snapshot and the names of what really differs out. Order and duplicates of events of different objects
don't matter, and a complete list gives the same Snapshot as the events that led to it.
"""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar, cast

import msgspec

from endpointslice.types import (
    DaemonSet,
    DaemonSetName,
    Kind,
    Node,
    NodeName,
    Object,
    Pod,
    PodName,
    Service,
    ServiceCIDR,
    ServiceName,
    Skipped,
    Slice,
    SliceName,
)

K = TypeVar("K")
V = TypeVar("V")


class Changed(msgspec.Struct, frozen=True, gc=False):
    """One object as its source has it now."""

    kind: Kind
    name: str  # "namespace/name", or "name" for a Node or a ServiceCIDR
    object: Object | None  # None: deleted, or there but unusable (then `skipped` says why)
    skipped: tuple[Skipped, ...] = ()


class Listed(msgspec.Struct, frozen=True):
    """Every object of one kind: what isn't among them is gone."""

    kind: Kind
    objects: tuple[Changed, ...]


class Snapshot(msgspec.Struct, frozen=True):
    """All objects that decisions read. Never changed in place; parts that an event didn't touch are shared."""

    services: Mapping[ServiceName, Service]
    slices: Mapping[ServiceName, Mapping[SliceName, Slice]]  # also of Services that don't exist yet (m17)
    nodes: Mapping[NodeName, Node]
    daemon_sets: Mapping[DaemonSetName, DaemonSet]
    service_cidrs: Mapping[str, ServiceCIDR]
    pods: Mapping[PodName, Pod]
    skipped: Mapping[tuple[Kind, str], tuple[Skipped, ...]]
    slice_services: Mapping[SliceName, ServiceName]  # where a slice is kept, so that it can move (m19)


class Touched(msgspec.Struct, frozen=True):
    """Names of what differs by value between two Snapshots."""

    services: frozenset[ServiceName]  # the Service itself or its slices
    nodes: frozenset[NodeName]
    daemon_sets: frozenset[DaemonSetName]
    pods: frozenset[PodName]
    service_cidrs: bool


EMPTY = Snapshot(
    services={}, slices={}, nodes={}, daemon_sets={}, service_cidrs={}, pods={}, skipped={}, slice_services={}
)


class _Table(msgspec.Struct, Generic[K, V]):
    """A mapping that is copied when it is first written to."""

    kept: Mapping[K, V]  # the Snapshot's own, never written to
    copy: dict[K, V] | None = None
    written: set[K] = msgspec.field(default_factory=set)


class _Draft(msgspec.Struct):
    """A Snapshot in the making."""

    tables: dict[Kind, _Table[str, Object]]  # of every kind but slices
    slices: _Table[ServiceName, Mapping[SliceName, Slice]]
    slice_services: _Table[SliceName, ServiceName]
    skipped: _Table[tuple[Kind, str], tuple[Skipped, ...]]


def apply_events(snapshot: Snapshot, events: Iterable[Changed | Listed]) -> tuple[Snapshot, Touched]:
    """The Snapshot after the events, and what differs from the one before by value.

    Of a slice, `triggered` is kept but touches nothing: traffic doesn't depend on it (m20). A mapping is copied at most
    once per call, and only if something in it differs.
    """
    draft = _Draft(
        tables={kind: _Table(table) for kind, table in _tables(snapshot).items()},
        slices=_Table(snapshot.slices),
        slice_services=_Table(snapshot.slice_services),
        skipped=_Table(snapshot.skipped),
    )
    for event in events:
        if isinstance(event, Listed):
            _apply_list(draft, event)
        else:
            _apply_change(draft, event.kind, event)
    return _finish(draft), _touched(draft)


def _tables(snapshot: Snapshot) -> dict[Kind, Mapping[str, Object]]:
    tables = {
        Kind.SERVICE: snapshot.services,
        Kind.NODE: snapshot.nodes,
        Kind.DAEMON_SET: snapshot.daemon_sets,
        Kind.SERVICE_CIDR: snapshot.service_cidrs,
        Kind.POD: snapshot.pods,
    }
    return cast("dict[Kind, Mapping[str, Object]]", tables)


def _apply_list(draft: _Draft, listed: Listed) -> None:
    kind = listed.kind
    slices = _read(draft.slice_services)
    held: Iterable[str] = slices if kind is Kind.ENDPOINT_SLICE else _read(draft.tables[kind])
    skipped = {name for skipped_kind, name in _read(draft.skipped) if skipped_kind is kind}
    for name in skipped.union(held) - {changed.name for changed in listed.objects}:
        _apply_change(draft, kind, Changed(kind, name, None))
    for changed in listed.objects:
        _apply_change(draft, kind, changed)


def _apply_change(draft: _Draft, kind: Kind, changed: Changed) -> None:
    _put(draft.skipped, (kind, changed.name), changed.skipped or None)
    if kind is Kind.ENDPOINT_SLICE:
        _put_slice(draft, SliceName(changed.name), cast("Slice | None", changed.object))
    else:
        _put(draft.tables[kind], changed.name, changed.object)


def _put_slice(draft: _Draft, name: SliceName, piece: Slice | None) -> None:
    """Keep a slice with its Service, and nowhere else (m19)."""
    service = piece.service if piece is not None else None
    before = _read(draft.slice_services).get(name)
    if before is not None and before != service:
        others = {key: other for key, other in _read(draft.slices)[before].items() if key != name}
        _put(draft.slices, before, others or None)
    _put(draft.slice_services, name, service)
    if piece is None:
        return
    siblings = _read(draft.slices).get(piece.service)
    if siblings is None:
        _write(draft.slices, piece.service)[piece.service] = {name: piece}
    elif siblings.get(name) != piece:
        if piece.service in draft.slices.written:
            cast("dict[SliceName, Slice]", siblings)[name] = piece  # a dict of this draft's own
        else:
            _write(draft.slices, piece.service)[piece.service] = {**siblings, name: piece}


def _read(table: _Table[K, V]) -> Mapping[K, V]:
    return table.kept if table.copy is None else table.copy


def _write(table: _Table[K, V], key: K) -> dict[K, V]:
    """The table's copy, made if need be, in which the caller is about to write the key."""
    table.written.add(key)
    if table.copy is None:
        table.copy = dict(table.kept)
    return table.copy


def _put(table: _Table[K, V], key: K, value: V | None) -> None:
    """Store the value, or remove the key if it is None; equal values are left as they are."""
    if _read(table).get(key) == value:
        return
    if value is None:
        del _write(table, key)[key]
    else:
        _write(table, key)[key] = value


def _finish(draft: _Draft) -> Snapshot:
    tables = {kind: _read(table) for kind, table in draft.tables.items()}
    return Snapshot(
        services=cast("Mapping[ServiceName, Service]", tables[Kind.SERVICE]),
        slices=_read(draft.slices),
        nodes=cast("Mapping[NodeName, Node]", tables[Kind.NODE]),
        daemon_sets=cast("Mapping[DaemonSetName, DaemonSet]", tables[Kind.DAEMON_SET]),
        service_cidrs=cast("Mapping[str, ServiceCIDR]", tables[Kind.SERVICE_CIDR]),
        pods=cast("Mapping[PodName, Pod]", tables[Kind.POD]),
        skipped=_read(draft.skipped),
        slice_services=_read(draft.slice_services),
    )


def _touched(draft: _Draft) -> Touched:
    changed = {kind: _changed(table) for kind, table in draft.tables.items()}
    slices = (
        name
        for name in draft.slices.written
        if not _same_traffic(draft.slices.kept.get(name, {}), _read(draft.slices).get(name, {}))
    )
    return Touched(
        services=cast("frozenset[ServiceName]", changed[Kind.SERVICE]).union(slices),
        nodes=cast("frozenset[NodeName]", changed[Kind.NODE]),
        daemon_sets=cast("frozenset[DaemonSetName]", changed[Kind.DAEMON_SET]),
        pods=cast("frozenset[PodName]", changed[Kind.POD]),
        service_cidrs=bool(changed[Kind.SERVICE_CIDR]),
    )


def _changed(table: _Table[K, V]) -> frozenset[K]:
    """The keys whose value differs; one that changed and changed back doesn't."""
    after = _read(table)
    return frozenset(key for key in table.written if table.kept.get(key) != after.get(key))


def _same_traffic(before: Mapping[SliceName, Slice], after: Mapping[SliceName, Slice]) -> bool:
    """Whether two versions of a Service's slices differ in no more than what triggered them."""
    return before.keys() == after.keys() and all(
        piece == (other := after[name]) or piece == msgspec.structs.replace(other, triggered=piece.triggered)
        for name, piece in before.items()
    )
