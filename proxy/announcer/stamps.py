"""When the kernel took in what a socket gives: a time that doesn't depend on when somebody reads it. No I/O."""

import socket
import struct
from collections.abc import Iterable

SO_TIMESTAMPNS = 35
ANCILLARY_BYTES = 64
_TIMESPEC = struct.Struct("@qq")
_NS = 1e-9


def read_age(ancillary: Iterable[tuple[int, int, bytes]], wall_s: float) -> float:
    """Seconds until `wall_s`, 0 without a stamp; the kernel stamps by the wall clock, so a jump of it counts."""
    for level, kind, value in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS) and len(value) >= _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack_from(value)
            taken_s: float = seconds + nanoseconds * _NS
            return max(0.0, wall_s - taken_s)
    return 0.0
