"""What a batch of events means for metrics and logs, and how two batches' touched names add up. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

from endpointslice.snapshot import Changed, Listed, Snapshot, Touched
from endpointslice.types import Kind, Skipped, Slice

Batch = tuple[Changed | Listed, ...]


def merge_touched(a: Touched, b: Touched) -> Touched:
    """All that either names."""
    return Touched(
        services=a.services | b.services,
        nodes=a.nodes | b.nodes,
        daemon_sets=a.daemon_sets | b.daemon_sets,
        pods=a.pods | b.pods,
        service_cidrs=a.service_cidrs or b.service_cidrs,
    )


def count_changes(batch: Iterable[Changed | Listed]) -> Counter[Kind]:
    """How many objects of each kind the batch speaks of."""
    return Counter(change.kind for change in _changes(batch))


def new_triggers(before: Snapshot, batch: Iterable[Changed | Listed], started: datetime) -> Iterator[datetime]:
    """When the pods behind changed slices changed, as the slice controller noted; not those before our start.

    It notes whole seconds (pods' conditions have no more), so the second of our start counts as after it.
    """
    since = started.replace(microsecond=0)
    for change in _changes(batch):
        piece = change.object
        if not isinstance(piece, Slice) or not piece.triggered:
            continue
        held = before.slices.get(piece.service, {}).get(piece.name)
        if held is not None and held.triggered == piece.triggered:
            continue
        try:
            at = datetime.fromisoformat(piece.triggered)
        except ValueError:
            continue
        if at.tzinfo is not None and at >= since:
            yield at


def new_skipped(before: Snapshot, after: Snapshot, batch: Iterable[Changed | Listed]) -> Iterator[Skipped]:
    """What of the batch can't be used, where that wasn't so before."""
    for change in _changes(batch):
        key = (change.kind, change.name)
        known = before.skipped.get(key, ())
        yield from (skipped for skipped in after.skipped.get(key, ()) if skipped not in known)


def _changes(batch: Iterable[Changed | Listed]) -> Iterator[Changed]:
    for event in batch:
        if isinstance(event, Listed):
            yield from event.objects
        else:
            yield event
