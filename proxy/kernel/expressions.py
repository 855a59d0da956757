"""Expressions of rules as the kernel lists them, so that sent and read are equal. Pure."""

from endpointslice.types import Family, Protocol
from proxy.kernel.attributes import pack_attribute, pack_name, pack_nest, pack_u32
from proxy.kernel.batch import FAMILY_NUMBERS
from proxy.kernel.ruleset import address_bytes

PROTOCOL_NUMBERS = {Protocol.TCP: 6, Protocol.UDP: 17, Protocol.SCTP: 132}  # IANA protocol numbers
DROP, ACCEPT = 0, 1  # NF_DROP, NF_ACCEPT

_ELEMENT = 1  # NFTA_LIST_ELEM
_NAME, _DATA = 1, 2  # NFTA_EXPR_*
_VERDICT_REGISTER = 0
_NETWORK_HEADER, _TRANSPORT_HEADER = 1, 2  # NFT_PAYLOAD_*_HEADER
_META_L4PROTO = 16
_NUMGEN_RANDOM = 1
_NAT_DESTINATION = 1  # NFT_NAT_DNAT
_NAT_ADDRESS_AND_PORT = 3  # NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED
_SOURCE = {Family.IPV4: 12, Family.IPV6: 8}  # offsets in the network header
_DESTINATION = {Family.IPV4: 16, Family.IPV6: 24}


def register(word: int) -> int:
    """The kernel's number for the register at this word: 1-4 where one of 16 bytes starts, else that of 4 bytes."""
    return 1 + word // 4 if word % 4 == 0 else 8 + word


def load_source(family: Family, register: int) -> bytes:
    """`ip saddr` into the register."""
    return _load_payload(register, _NETWORK_HEADER, _SOURCE[family], address_bytes(family))


def load_destination(family: Family, register: int) -> bytes:
    """`ip daddr` into the register."""
    return _load_payload(register, _NETWORK_HEADER, _DESTINATION[family], address_bytes(family))


def load_port(register: int) -> bytes:
    """`th dport` into the register."""
    return _load_payload(register, _TRANSPORT_HEADER, 2, 2)


def load_protocol(register: int) -> bytes:
    """`meta l4proto` into the register."""
    return pack_expression("meta", pack_u32(2, _META_L4PROTO), pack_u32(1, register))


def load_random(modulus: int, register: int) -> bytes:
    """`numgen random mod N` into the register."""
    parts = (pack_u32(1, register), pack_u32(2, modulus), pack_u32(3, _NUMGEN_RANDOM), pack_u32(4, 0))
    return pack_expression("numgen", *parts)


def match_protocol(protocol: Protocol) -> bytes:
    """`meta l4proto tcp`, by way of register 1."""
    value = pack_nest(3, pack_attribute(1, bytes([PROTOCOL_NUMBERS[protocol]])))
    return load_protocol(1) + pack_expression("cmp", pack_u32(1, 1), pack_u32(2, 0), value)


def dnat_by_map(family: Family, endpoints: str) -> bytes:
    """`dnat ip to .. map @endpoints`, the key being in register 1."""
    first = register(0)
    port = register(address_bytes(family) // 4)
    return pack_expression(
        "lookup", pack_name(1, endpoints), pack_u32(2, first), pack_u32(3, first), pack_u32(5, 0)
    ) + pack_expression(
        "nat",
        pack_u32(1, _NAT_DESTINATION),
        pack_u32(2, FAMILY_NUMBERS[family]),
        pack_u32(3, first),
        pack_u32(4, first),
        pack_u32(5, port),
        pack_u32(6, port),
        pack_u32(7, _NAT_ADDRESS_AND_PORT),
    )


def verdict(code: int) -> bytes:
    """`accept` or `drop`."""
    data = pack_nest(2, pack_nest(2, pack_u32(1, code)))
    return pack_expression("immediate", pack_u32(1, _VERDICT_REGISTER), data)


def pack_expression(name: str, *data: bytes) -> bytes:
    """One expression of a rule."""
    return pack_nest(_ELEMENT, pack_name(_NAME, name), pack_nest(_DATA, *data))


def _load_payload(register: int, header: int, offset: int, size: int) -> bytes:
    parts = (pack_u32(1, register), pack_u32(2, header), pack_u32(3, offset), pack_u32(4, size))
    return pack_expression("payload", *parts)
