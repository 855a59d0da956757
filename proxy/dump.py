"""All that the decisions read, as one JSON file: a kubectl-style List, with our settings beside it.

`plan` and `explain` take it by --dump; put into a folder of manifests it works as well.
"""

import msgspec

from endpointslice.encode import encode_snapshot
from endpointslice.snapshot import Snapshot
from endpointslice.types import Kind, Skipped
from proxy.planner.settings import Settings


class _SkippedObject(msgspec.Struct, frozen=True):
    """An object of the source that can't be used, whole or in part."""

    kind: Kind
    name: str
    parts: tuple[Skipped, ...]


class _Facts(msgspec.Struct, frozen=True):
    """What a dump holds besides settings and objects."""

    skipped: tuple[_SkippedObject, ...] = ()


def render_dump(snapshot: Snapshot, settings: Settings) -> bytes:
    """UTF-8 JSON, indented, with a newline at its end; equal input gives equal bytes."""
    skipped = (_SkippedObject(kind, name, parts) for (kind, name), parts in sorted(snapshot.skipped.items()))
    document = {
        "apiVersion": "v1",
        "kind": "List",
        "closeby": {**msgspec.to_builtins(settings), "skipped": msgspec.to_builtins(tuple(skipped))},
        "items": encode_snapshot(snapshot),
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def read_settings(extra: object) -> Settings | None:
    """The settings of a dump's "closeby" key; None where it has none, as a plain List."""
    if extra is None:
        return None
    try:
        return msgspec.convert(extra, Settings)
    except msgspec.ValidationError:
        return None


def add_skipped(snapshot: Snapshot, extra: object) -> Snapshot:
    """The Snapshot with what the dump's source skipped, so that `explain` knows of it; a plain List adds nothing."""
    try:
        facts = msgspec.convert(extra, _Facts)
    except msgspec.ValidationError:
        return snapshot
    skipped = {(one.kind, one.name): one.parts for one in facts.skipped}
    return msgspec.structs.replace(snapshot, skipped={**skipped, **snapshot.skipped})
