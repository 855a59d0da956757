"""All that the decisions read, as one JSON file: a kubectl-style List, with our settings beside it.

`plan` and `explain` take it by --dump; put into a folder of manifests it works as well.
"""

import msgspec
from endpointslice.encode import encode_snapshot

from endpointslice.snapshot import Snapshot
from proxy.planner.settings import Settings


def render_dump(snapshot: Snapshot, settings: Settings) -> bytes:
    """UTF-8 JSON, indented, with a newline at its end; equal input gives equal bytes."""
    document = {
        "apiVersion": "v1",
        "kind": "List",
        "closeby": msgspec.to_builtins(settings),
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
