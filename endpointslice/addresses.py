"""IP addresses and networks as text: parsed leniently, canonical from then on.

Kubernetes reads addresses with Go's old, sloppy parser: leading zeros are decimal (10.0.0.011 is 10.0.0.11), and an
IPv4 address written as IPv6 (::ffff:10.0.0.1) is IPv4. Python's `ipaddress` refuses the first and keeps the second.
"""

import ipaddress
import re
import struct

from endpointslice.types import CIDR, IP, Family

_PACKED_OCTETS = {str(octet): bytes((octet,)) for octet in range(256)}  # half the time of bytes(map(int, ..))
_OCTETS = frozenset(_PACKED_OCTETS)
_MAPPED_BITS = 96  # of ::ffff:0:0/96
_GROUPS = 8  # of 16 bits, in an IPv6 address
_PACKED_GROUPS = struct.Struct("!8H")
# The usual IPv6 address is canonical already: no group is 0 but those behind the "::", which stands for two or more.
_GROUP = "[1-9a-f][0-9a-f]{0,3}"
_CANONICAL_IPV6 = re.compile(f"(?!::ffff:)(?:{_GROUP}(?::{_GROUP})*)?::(?:{_GROUP}(?::{_GROUP})*)?")
_MOST_COLONS = 6  # beside a "::" with groups on both sides


def parse_ip(text: str) -> IP | None:
    """The canonical address, or None if `text` isn't one; IPv4-mapped ones come back as IPv4, zone ids are refused."""
    parts = text.split(".")
    if len(parts) == 4 and _OCTETS.issuperset(parts):  # noqa: PLR2004  # the usual case, already canonical
        return IP(text)
    if _CANONICAL_IPV6.fullmatch(text) and text.count(":") <= _MOST_COLONS:
        return IP(text)
    if ":" not in text:
        octets = _sloppy_octets(parts)
        return None if octets is None else IP(octets)
    address = _parse_ipv6(text)
    if address is None:
        return None
    mapped = address.ipv4_mapped
    return IP(address.compressed if mapped is None else str(mapped))


def parse_cidr(text: str) -> CIDR | None:
    """The canonical network with its host bits cleared, or None if `text` isn't "address/length"."""
    address, slash, length_text = text.partition("/")
    ip = parse_ip(address)
    if ip is None or not slash or not (length_text.isascii() and length_text.isdigit()):
        return None
    length = int(length_text)
    if ":" in address and ":" not in ip:
        length -= _MAPPED_BITS
    try:
        network = ipaddress.ip_network((ip, length), strict=False)
    except ValueError:
        return None
    return CIDR(network.compressed)


def family_of(address: IP | CIDR) -> Family:
    """The family that canonical text shows."""
    return Family.IPV6 if ":" in address else Family.IPV4


def pack_ip(ip: IP) -> bytes:
    """The address in network byte order: 4 or 16 bytes."""
    if ":" not in ip:
        first, second, third, fourth = ip.split(".")
        return _PACKED_OCTETS[first] + _PACKED_OCTETS[second] + _PACKED_OCTETS[third] + _PACKED_OCTETS[fourth]
    head, gap, tail = ip.partition("::")
    front = [int(group, 16) for group in head.split(":")] if head else []
    back = [int(group, 16) for group in tail.split(":")] if tail else []
    middle = [0] * (_GROUPS - len(front) - len(back)) if gap else []
    return _PACKED_GROUPS.pack(*front, *middle, *back)


def pack_cidr(cidr: CIDR) -> bytes:
    """The first and the last address of the network, one after the other: 8 or 32 bytes."""
    network = ipaddress.ip_network(cidr)
    return network.network_address.packed + network.broadcast_address.packed


def join_host_port(ip: IP, port: int) -> str:
    """The text "10.0.0.1:80" or "[fd00::1]:80"."""
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def _sloppy_octets(parts: list[str]) -> str | None:
    """Dotted decimal with leading zeros, made canonical."""
    if len(parts) != 4:  # noqa: PLR2004  # octets
        return None
    stripped = [part.lstrip("0") or "0" if part else "" for part in parts]
    return ".".join(stripped) if _OCTETS.issuperset(stripped) else None


def _parse_ipv6(text: str) -> ipaddress.IPv6Address | None:
    """An IPv6 address, with sloppy octets where it ends in dotted decimal."""
    if "%" in text:
        return None
    front, _colon, last = text.rpartition(":")
    if "." in last:
        octets = _sloppy_octets(last.split("."))
        if octets is None:
            return None
        text = f"{front}:{octets}"
    try:
        return ipaddress.IPv6Address(text)
    except ValueError:
        return None
