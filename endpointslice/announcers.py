"""Which nodes should answer for a Service's load-balancer addresses, by its annotations; the proxy itself reads none.

closeby.dev/announce-on: node-1, node-2          only these
closeby.dev/prefer-nodes: node-1=100, node-2=50  these before others, the highest weight first; 1 to 100, 100 if none
"""

from typing import NamedTuple

from endpointslice.metadata import ANNOUNCE_ON, PREFER_NODES, Annotations
from endpointslice.reasons import Reason, describe
from endpointslice.types import NodeName, Skipped

MOST_WEIGHT = 100


class Announcers(NamedTuple):
    """What a Service asks for."""

    only: frozenset[NodeName] = frozenset()  # empty: any
    preferred: tuple[tuple[NodeName, int], ...] = ()  # by name


def read_announcers(annotations: Annotations | None, label: str, skipped: list[Skipped]) -> Announcers:
    """The usable parts; of a node that is named twice the last weight counts."""
    if annotations is None:
        return Announcers()
    weights: dict[NodeName, int] = {}
    for part in _parts(annotations.prefer_nodes):
        name, _equals, text = part.partition("=")
        weight = _weight(text.strip())
        if weight is None or not name.strip():
            skipped.append(Skipped(label, Reason.BAD_WEIGHT, describe(f"metadata.annotations[{PREFER_NODES}]", part)))
        else:
            weights[NodeName(name.strip())] = weight
    only = frozenset(NodeName(part) for part in _parts(annotations.announce_on))
    return Announcers(only, tuple(sorted(weights.items())))


def render_announcers(asked: Announcers) -> dict[str, str]:
    """The annotations that say so."""
    texts = {
        ANNOUNCE_ON: ",".join(sorted(asked.only)),
        PREFER_NODES: ",".join(f"{name}={weight}" for name, weight in asked.preferred),
    }
    return {key: text for key, text in texts.items() if text}


def _parts(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _weight(text: str) -> int | None:
    if not text:
        return MOST_WEIGHT
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MOST_WEIGHT))):
        return None
    return int(text) if 1 <= int(text) <= MOST_WEIGHT else None
