"""Keys and data of elements as the kernel has them: fields padded to 4 bytes (tried on kernel 6.18, nft 1.0.6)."""

import struct
import sys
from functools import lru_cache

from endpointslice.addresses import pack_cidr, pack_ip
from endpointslice.types import CIDR, IP, Protocol
from proxy.kernel.expressions import PROTOCOL_NUMBERS
from proxy.kernel.ruleset import INTERFACE_BYTES

_PROTOCOLS = {protocol: struct.pack("!B3x", number) for protocol, number in PROTOCOL_NUMBERS.items()}
_PORT = struct.Struct("!H2x")
_INDEX = struct.Struct("<I" if sys.byteorder == "little" else ">I")  # numgen writes the host's order
_INDEXES = tuple(_INDEX.pack(index) for index in range(1024))


def pack_vip(ip: IP, protocol: Protocol, port: int) -> bytes:
    """Daddr . l4proto . dport."""
    return pack_ip(ip) + _PROTOCOLS[protocol] + _PORT.pack(port)


def pack_node_port(protocol: Protocol, port: int) -> bytes:
    """l4proto . dport."""
    return _PROTOCOLS[protocol] + _PORT.pack(port)


def pack_target(ip: IP, port: int) -> bytes:
    """The data of a dnat map: addr . port."""
    return pack_ip(ip) + _PORT.pack(port)


def pack_index(index: int) -> bytes:
    """The last field of an endpoint's key: what numgen draws."""
    return _INDEXES[index] if index < len(_INDEXES) else _INDEX.pack(index)


def pack_indexes(prefix: bytes, count: int) -> list[bytes]:
    """The keys of a frontend's endpoints, by index."""
    indexes = _INDEXES[:count] if count <= len(_INDEXES) else map(_INDEX.pack, range(count))
    return [prefix + index for index in indexes]


@lru_cache(maxsize=1024)
def pack_range(cidr: CIDR) -> bytes:
    """First and last address of a network, the key of an interval."""
    return pack_cidr(cidr)


def pack_interfaces(pattern: str) -> bytes:
    """First and last name, the key of an interval: an interface's name alone, or all that begin as `veth*` says."""
    name = pattern.removesuffix("*").encode()
    filled = b"\xff" if pattern.endswith("*") else b"\0"
    return name.ljust(INTERFACE_BYTES, b"\0") + name.ljust(INTERFACE_BYTES, filled)
