"""IPv6 headers and the checksum that ICMP of both versions carries (RFC 8200, RFC 1071). No I/O."""

import struct
from typing import NamedTuple

from proxy.announcer.ethernet import Drop

HEADER = struct.Struct("!IHBB16s16s")
ICMPV6 = 58
HOP_LIMIT = 255
_VERSION = 6
_LAST_ICMP_BYTES = struct.Struct("!II")


class Packet(NamedTuple):
    """An ICMPv6 packet that is whole and whose checksum is right."""

    source: bytes
    destination: bytes
    hop_limit: int
    body: bytes  # type, code, checksum and what follows


def checksum(data: bytes) -> int:
    """RFC 1071: the complement of the sum of all 16-bit words."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def pseudo(source: bytes, destination: bytes, length: int) -> bytes:
    """What the checksum of ICMPv6 covers besides the message (RFC 8200, 8.1)."""
    return source + destination + _LAST_ICMP_BYTES.pack(length, ICMPV6)


def parse_icmpv6(payload: bytes) -> Packet | Drop:
    """The packet after the Ethernet header; extension headers aren't followed: NDP has none worth an answer."""
    if len(payload) < HEADER.size:
        return Drop.SHORT
    first, length, following, hop_limit, source, destination = HEADER.unpack_from(payload)
    if first >> 28 != _VERSION or following != ICMPV6:
        return Drop.NOT_OURS
    body = payload[HEADER.size : HEADER.size + length]
    if len(body) < length or length < len(b"type"):
        return Drop.SHORT
    if checksum(pseudo(source, destination, length) + body) != 0:
        return Drop.CHECKSUM
    return Packet(source, destination, hop_limit, body)


def pack_icmpv6(source: bytes, destination: bytes, body: bytes, hop_limit: int = HOP_LIMIT) -> bytes:
    """The packet; the checksum's two bytes in `body` are filled in."""
    bare = body[:2] + b"\0\0" + body[4:]
    total = checksum(pseudo(source, destination, len(bare)) + bare)
    header = HEADER.pack(_VERSION << 28, len(body), ICMPV6, hop_limit, source, destination)
    return header + bare[:2] + total.to_bytes(2, "big") + bare[4:]
