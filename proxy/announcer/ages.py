"""How long ago a member heard each other one, as it came: of 30 names that a heartbeat has, one or two are asked for.

Taking all apart would be most of what a heartbeat costs, and there are 300 of those a second among 30 members.
"""

import math
import struct
from collections.abc import Iterator, Mapping

from proxy.l2.types import MemberId

_TICKS_A_SECOND = 100
_NO_AGE = 0xFFFF  # never, or longer ago than eleven minutes
_ENTRY = struct.Struct("!QH")  # member, age in 10 ms
_MEMBER_BYTES = 8
ENTRY_BYTES = _ENTRY.size


class PackedAges(Mapping[MemberId, float]):
    """Seconds by member, to 10 ms; infinity for what is longer ago than the field tells. Of a name twice the first."""

    def __init__(self, data: bytes) -> None:
        """A multiple of ENTRY_BYTES."""
        self._data = data

    def __getitem__(self, member: MemberId) -> float:
        wanted = member.to_bytes(_MEMBER_BYTES, "big")
        at = self._data.find(wanted)
        while at % ENTRY_BYTES and at > 0:
            at = self._data.find(wanted, at + 1)
        if at < 0:
            raise KeyError(member)
        return _seconds(int.from_bytes(self._data[at + _MEMBER_BYTES : at + ENTRY_BYTES], "big"))

    def __iter__(self) -> Iterator[MemberId]:
        return iter(dict.fromkeys(MemberId(member) for member, _ticks in _ENTRY.iter_unpack(self._data)))

    def __len__(self) -> int:
        return len({member for member, _ticks in _ENTRY.iter_unpack(self._data)})

    def __repr__(self) -> str:
        return repr(dict(self))


def pack_age(member: MemberId, seconds: float) -> bytes:
    """One entry, rounded to 10 ms."""
    return _ENTRY.pack(member, round(min(max(seconds, 0.0) * _TICKS_A_SECOND, _NO_AGE)))


def _seconds(ticks: int) -> float:
    return math.inf if ticks == _NO_AGE else ticks / _TICKS_A_SECOND
