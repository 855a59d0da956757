"""The chains that pick one of N endpoints, in the form that the kernel lists, so that sent and read are equal. Pure.

Text can't add them to a live table: nft 1.0.6 and 1.1.3 refuse every dnat rule on a map whose `th dport` data they read
back from the kernel ("conflicting protocols specified: ip vs. th").
"""

from collections.abc import Iterable
from functools import lru_cache

from endpointslice.types import Family
from proxy.kernel.attributes import pack_name, pack_nest, pack_u32
from proxy.kernel.batch import APPEND, CREATE, FAMILY_NUMBERS, Message, Type
from proxy.kernel.ruleset import LAYOUTS, TABLE, Field, SetName, address_bytes, parse_pick

CHAIN_TABLE, CHAIN_NAME = 1, 3  # NFTA_CHAIN_*
RULE_TABLE, RULE_CHAIN, RULE_EXPRESSIONS = 1, 2, 4  # NFTA_RULE_*
_ELEMENT = 1  # NFTA_LIST_ELEM
_EXPRESSION_NAME, _EXPRESSION_DATA = 1, 2  # NFTA_EXPR_*
_VERDICT_REGISTER = 0
_NETWORK_HEADER, _TRANSPORT_HEADER = 1, 2  # NFT_PAYLOAD_*_HEADER
_META_L4PROTO = 16
_NUMGEN_RANDOM = 1
_NAT_DESTINATION = 1  # NFT_NAT_DNAT
_NAT_ADDRESS_AND_PORT = 3  # NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED
_DESTINATION = {Family.IPV4: (16, 4), Family.IPV6: (24, 16)}  # offset and size in the network header


def plan_pick_chains(chains: Iterable[tuple[Family, str]]) -> list[Message]:
    """The messages that create these pick chains; a name that is no pick chain gives none."""
    return [message for family, chain in sorted(chains) for message in _pick_messages(family, chain)]


@lru_cache(maxsize=4096)
def _pick_messages(family: Family, chain: str) -> tuple[Message, ...]:
    rules = pick_rules(family, chain)
    if not rules:
        return ()
    names = pack_name(RULE_TABLE, TABLE) + pack_name(RULE_CHAIN, chain)
    return (
        Message(Type.NEWCHAIN, family, pack_name(CHAIN_TABLE, TABLE) + pack_name(CHAIN_NAME, chain), CREATE),
        *(Message(Type.NEWRULE, family, names + rule, CREATE | APPEND) for rule in rules),
    )


@lru_cache(maxsize=4096)
def pick_rules(family: Family, chain: str) -> tuple[bytes, ...]:
    """NFTA_RULE_EXPRESSIONS of the chain's three rules; () if the name is not a pick chain's.

    The second rule rescues a packet that was sent here for N endpoints and looks them up after N shrank: index 0 exists
    as long as any does. The drop stops what is left, since a packet that passes un-NATed fixes its flow (a UDP black
    hole), while a dropped one is sent again.
    """
    pick = parse_pick(chain)
    if pick is None:
        return ()
    drop = _expression("immediate", pack_u32(1, _VERDICT_REGISTER), pack_nest(2, pack_nest(2, pack_u32(1, 0))))
    return (
        _dnat_rule(family, pick.endpoints, pick.size),
        _dnat_rule(family, pick.endpoints, 1),
        pack_nest(RULE_EXPRESSIONS, drop),
    )


def _dnat_rule(family: Family, endpoints: SetName, modulus: int) -> bytes:
    """`dnat ip to [ip daddr .] meta l4proto . th dport . numgen random mod N map @endpoints`."""
    word = 0  # the next free 4 bytes of the registers
    loads: list[bytes] = []
    for field in LAYOUTS[endpoints].key:
        loads.append(_load(field, family, _register(word), modulus))
        word += address_bytes(family) // 4 if field is Field.ADDRESS else 1
    key = data = _register(0)
    lookup = _expression("lookup", pack_name(1, endpoints), pack_u32(2, key), pack_u32(3, data), pack_u32(5, 0))
    port = _register(address_bytes(family) // 4)
    nat = _expression(
        "nat",
        pack_u32(1, _NAT_DESTINATION),
        pack_u32(2, FAMILY_NUMBERS[family]),
        pack_u32(3, data),
        pack_u32(4, data),
        pack_u32(5, port),
        pack_u32(6, port),
        pack_u32(7, _NAT_ADDRESS_AND_PORT),
    )
    return pack_nest(RULE_EXPRESSIONS, *loads, lookup, nat)


def _load(field: Field, family: Family, register: int, modulus: int) -> bytes:
    """The expression that puts one field of the packet, or the random index, into a register."""
    match field:
        case Field.ADDRESS:
            return _load_payload(register, _NETWORK_HEADER, *_DESTINATION[family])
        case Field.PROTOCOL:
            return _expression("meta", pack_u32(2, _META_L4PROTO), pack_u32(1, register))
        case Field.PORT:
            return _load_payload(register, _TRANSPORT_HEADER, 2, 2)
        case Field.INDEX:
            parts = (pack_u32(1, register), pack_u32(2, modulus), pack_u32(3, _NUMGEN_RANDOM), pack_u32(4, 0))
            return _expression("numgen", *parts)


def _load_payload(register: int, header: int, offset: int, size: int) -> bytes:
    parts = (pack_u32(1, register), pack_u32(2, header), pack_u32(3, offset), pack_u32(4, size))
    return _expression("payload", *parts)


def _register(word: int) -> int:
    """The kernel's number for the register at this word: 1-4 where one of 16 bytes starts, else that of 4 bytes."""
    return 1 + word // 4 if word % 4 == 0 else 8 + word


def _expression(name: str, *data: bytes) -> bytes:
    return pack_nest(_ELEMENT, pack_name(_EXPRESSION_NAME, name), pack_nest(_EXPRESSION_DATA, *data))
