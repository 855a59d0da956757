"""EFFECT. Tells when someone else changed our tables."""

from collections.abc import Collection
from enum import StrEnum

from endpointslice.types import Family


class Seen(StrEnum):
    """What a wait brought."""

    NOTHING = "nothing"
    OURS_CHANGED = "ours-changed"
    UNKNOWN = "unknown"  # notifications were lost: read back


class Monitor:
    """A socket that hears of every transaction but our own; one thread waits on it."""

    def __init__(self, port_id: int, families: Collection[Family] = (Family.IPV4, Family.IPV6)) -> None:
        raise NotImplementedError

    def fileno(self) -> int:
        """For select() and the like."""
        raise NotImplementedError

    def wait(self, timeout_s: float | None) -> Seen:
        """What others did since the last call, waiting at most `timeout_s` seconds for something (None: for ever)."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the socket; a wait in another thread may not notice: give it a time-out."""
