"""Netlink attributes: length, type, value, padded to 4 bytes (linux/netlink.h). Pure.

Lengths and types are in the host's order; the values of nf_tables are in network order.
"""

import struct
from collections.abc import Iterator

HEADER = struct.Struct("=HH")
MAX_BYTES = 60_000  # what we put into one attribute; its 16-bit length ends at 65,535
_U32 = struct.Struct("!I")
_TYPE_MASK = 0x3FFF  # without NLA_F_NESTED and NLA_F_NET_BYTEORDER
_PADDING = (b"", b"\0\0\0", b"\0\0", b"\0")


def pack_attribute(kind: int, value: bytes) -> bytes:
    """One attribute with its padding."""
    return HEADER.pack(4 + len(value), kind) + value + _PADDING[len(value) % 4]


def pack_u32(kind: int, value: int) -> bytes:
    """One attribute that holds a number in network order."""
    return HEADER.pack(8, kind) + _U32.pack(value)


def pack_name(kind: int, name: str) -> bytes:
    """One attribute that holds a zero-terminated name."""
    return pack_attribute(kind, name.encode() + b"\0")


def pack_nest(kind: int, *attributes: bytes) -> bytes:
    """One attribute that holds others."""
    return pack_attribute(kind, b"".join(attributes))


def iter_attributes(buffer: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int, int]]:
    """(type, first byte of the value, end of the value) of each attribute; stops where a length makes no sense."""
    limit = len(buffer) if end is None else end
    while start + 4 <= limit:
        size, kind = HEADER.unpack_from(buffer, start)
        if size < 4 or start + size > limit:  # noqa: PLR2004  # the header's own size
            return
        yield kind & _TYPE_MASK, start + 4, start + size
        start += (size + 3) & ~3


def parse_attributes(buffer: bytes, start: int = 0, end: int | None = None) -> dict[int, bytes]:
    """Attribute type to value; of a repeated type the last."""
    return {kind: buffer[first:last] for kind, first, last in iter_attributes(buffer, start, end)}


def parse_name(value: bytes) -> str:
    """A zero-terminated name; bytes that are no text are kept visible."""
    return value.rstrip(b"\0").decode(errors="backslashreplace")


def parse_number(value: bytes) -> int:
    """A number in network order, of any width; 0 for no bytes."""
    return int.from_bytes(value)
