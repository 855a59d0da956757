"""The Snapshot: all objects that decisions read, and how events change it.

Event in, new Snapshot and the names of what really differs out. Order and duplicates of events of different objects
don't matter, and a complete list gives the same Snapshot as the events that led to it.
"""

from collections.abc import Iterable, Mapping

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


class Changed(msgspec.Struct, frozen=True):
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


def apply_events(snapshot: Snapshot, events: Iterable[Changed | Listed]) -> tuple[Snapshot, Touched]:
    raise NotImplementedError
