"""Reading and writing a message's fields one after another. Reading past the end gives zeros, and is remembered."""

import ipaddress
import struct
from typing import Any

from endpointslice.types import IP
from proxy.l2.types import Channel

_V4_BYTES, _V6_BYTES = 4, 16
_LONGEST_TEXT = 255
MOST_U16 = 0xFFFF
MOST_U32 = 0xFFFFFFFF


class Reader:
    """Strangers' bytes; `short` tells that there were too few, or that they made no sense, and nothing is raised."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self.short = False

    def take(self, count: int) -> bytes:
        """The next bytes; zeros if there are fewer."""
        part = self._data[self._at : self._at + count]
        self._at += count
        if len(part) < count:
            self.short = True
            return bytes(count)
        return part

    def rest(self) -> bytes:
        """All that is left, taken."""
        part = self._data[self._at :]
        self._at += len(part)
        return part

    def unpack(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Numbers, or bytes where the layout has them."""
        return layout.unpack(self.take(layout.size))

    @property
    def left(self) -> int:
        """Bytes that weren't read yet."""
        return max(0, len(self._data) - self._at)

    def number(self, size: int) -> int:
        """One unsigned number of so many bytes."""
        return int.from_bytes(self.take(size), "big")

    def text(self) -> str:
        """Text with its length in front."""
        data = self.take(self.number(1))
        try:
            return data.decode()
        except UnicodeDecodeError:
            self.short = True
            return ""

    def ip(self, *, is_v6: bool) -> IP:
        """An address, canonical."""
        data = self.take(_V6_BYTES if is_v6 else _V4_BYTES)
        return IP(str(ipaddress.IPv6Address(data) if is_v6 else ipaddress.IPv4Address(data)))

    def channels(self) -> tuple[Channel, ...]:
        """Names of wires."""
        count = self.number(1)
        return tuple(Channel(self.text()) for _ in range(count) if not self.short)


def pack_text(text: str) -> bytes:
    """At most 255 bytes of it."""
    data = text.encode(errors="replace")[:_LONGEST_TEXT]
    return bytes((len(data),)) + data


def pack_ip(address: IP) -> bytes:
    """Its 4 or 16 bytes."""
    return ipaddress.ip_address(address).packed


def pack_channels(names: tuple[Channel, ...]) -> bytes:
    """At most 255 of them."""
    some = names[:_LONGEST_TEXT]
    return bytes((len(some),)) + b"".join(pack_text(name) for name in some)


def limit(number: int, most: int) -> int:
    """The number, or the nearest that the field can hold."""
    return min(max(number, 0), most)
