"""Packed keys and data back to values that people know. Pure."""

import ipaddress
from collections.abc import Iterable

from endpointslice.addresses import join_host_port
from endpointslice.types import CIDR, IP, Family
from proxy.kernel.expressions import PROTOCOL_NUMBERS
from proxy.kernel.ruleset import address_bytes
from proxy.planner.keys import pack_range
from proxy.verify.types import Key, Sources

_PROTOCOLS = {number: protocol for protocol, number in PROTOCOL_NUMBERS.items()}
_NODE_PORT = IP("")  # in place of an address
_NODE_PORT_BYTES = 8


def unpack_address(packed: bytes) -> IP:
    """Canonical text of 4 or 16 bytes."""
    return IP(str(ipaddress.ip_address(packed)))


def unpack_key(family: Family, packed: bytes) -> Key | None:
    """The frontend at the beginning of a key, daddr . l4proto . dport, or l4proto . dport; None: it has another shape.

    Which of both, its size tells; so give no more than these fields.
    """
    is_node_port = len(packed) == _NODE_PORT_BYTES
    size = 0 if is_node_port else address_bytes(family)
    protocol = _PROTOCOLS.get(packed[size]) if len(packed) == size + _NODE_PORT_BYTES else None
    if protocol is None:
        return None
    ip = _NODE_PORT if is_node_port else unpack_address(packed[:size])
    return Key(family, ip, protocol, int.from_bytes(packed[size + 4 : size + 6]))


def show_target(family: Family, packed: bytes) -> str:
    """The text "ip:port" of an address and a port; hexadecimal digits where it is something else."""
    size = address_bytes(family)
    if len(packed) < size + 2:
        return packed.hex()
    return join_host_port(unpack_address(packed[:size]), int.from_bytes(packed[size : size + 2]))


def merge_sources(ranges: Iterable[tuple[int, int]]) -> Sources:
    """The same addresses in as few ranges as there can be, so that equal sources are equal values."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def unpack_range(packed: bytes) -> tuple[int, int]:
    """First and last address, one after the other."""
    half = len(packed) // 2
    return int.from_bytes(packed[:half]), int.from_bytes(packed[half:])


def read_cidrs(cidrs: Iterable[CIDR]) -> Sources:
    """Networks of one family as sources."""
    return merge_sources(unpack_range(pack_range(cidr)) for cidr in cidrs)


def show_sources(family: Family, sources: Sources) -> tuple[str, ...]:
    """Sources as networks."""
    kind = ipaddress.IPv4Address if family is Family.IPV4 else ipaddress.IPv6Address
    return tuple(
        str(network)
        for first, last in sources
        for network in ipaddress.summarize_address_range(kind(first), kind(last))
    )
