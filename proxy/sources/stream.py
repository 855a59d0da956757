"""The pure part of following the API server: bytes to lines, what a line means for the stream, how long to wait.

No I/O, no clock, no random source: numbers come in as arguments.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from endpointslice.decode import Changed, WatchLine

_GONE = 410  # the resourceVersion is too old: "Expired" or "Gone"
_BAD_REQUEST = 400  # not a resourceVersion of this server
_FUTURE = "Too large resource version"  # etcd was restored from a backup (Kubernetes 1.36 says it with 504)

MOST_LINE_BYTES = 64 << 20  # etcd takes no object over 1.5 MB by default
MIN_DELAY_S = 0.2
MAX_DELAY_S = 30.0


class LineError(ValueError):
    """A stream that isn't made of lines."""


class LineSplitter:
    """Lines of a byte stream that arrives in pieces."""

    def __init__(self, most_bytes: int = MOST_LINE_BYTES) -> None:
        self._most_bytes = most_bytes
        self._rest: list[bytes] = []  # pieces of the unfinished line; a list, since a line may come in many pieces
        self._held_bytes = 0  # of them

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that this piece completes, without their ends and without empty ones. Raises LineError.

        What follows the last newline waits for the next piece. At the end of the stream it is dropped: a connection may
        be cut in the middle of a line, and a half event is none.
        """
        head, newline, tail = piece.rpartition(b"\n")
        if not newline:
            self._rest.append(piece)
            self._held_bytes += len(piece)
            if self._held_bytes > self._most_bytes:
                raise LineError(f"a line of more than {self._most_bytes} bytes")
            return []
        whole = b"".join((*self._rest, head))
        self._rest = [tail]
        self._held_bytes = len(tail)
        return [line for line in whole.split(b"\n") if line]


class Batch(NamedTuple):
    """What some consecutive lines of a watch say."""

    changes: tuple[Changed, ...]
    resource_version: str  # resume after these from here; "": no line named one
    failed: WatchLine | None = None  # an ERROR event or an unreadable one: the stream ends here


def read_batch(lines: Iterable[WatchLine | None]) -> Batch:
    """Changes up to the first line that ends the stream; None is a line that isn't a complete event."""
    changes: list[Changed] = []
    version = ""
    for line in lines:
        if line is None:
            return Batch(tuple(changes), version, WatchLine("", None, "", 0, "a line that is no event"))
        if line.type == "ERROR":
            return Batch(tuple(changes), version, line)
        version = line.resource_version or version
        if line.change is not None:
            changes.append(line.change)
    return Batch(tuple(changes), version)


class After(StrEnum):
    """How to go on after a failure."""

    RESUME = "resume"  # watch on from the last resourceVersion
    RELIST = "relist"  # list again, with no resourceVersion


def choose_after(status: int, reason: str, *, silent: bool) -> After:
    """How to go on after an HTTP status or the code of an ERROR event (0: the connection broke).

    A silent stream (no event and no bookmark within the read time-out) may be a watch from a resourceVersion of the
    future: the server of a restored etcd answers such a watch with 200 and says nothing.
    """
    if silent or status in {_GONE, _BAD_REQUEST} or _FUTURE in reason:
        return After.RELIST
    return After.RESUME


def next_delay(attempt: int, randomness: float) -> float:
    """Seconds to wait before try number `attempt` + 1, for `randomness` in [0, 1).

    Full jitter: anything between 0 and a bound that doubles from MIN_DELAY_S to MAX_DELAY_S, so that thousands of nodes
    that lost their server at once come back spread out. `attempt` counts the failures in a row, from 1.
    """
    doublings = min(max(attempt, 1) - 1, 16)  # beyond 16 the bound has long been reached; 2 ** 5000 would overflow
    return randomness * min(MAX_DELAY_S, MIN_DELAY_S * 2.0**doublings)
