"""The chains that pick one of N endpoints, in the form that the kernel lists, so that sent and read are equal. Pure.

Text can't add them to a live table: nft 1.0.6 and 1.1.3 refuse every dnat rule on a map whose `th dport` data they read
back from the kernel ("conflicting protocols specified: ip vs. th").
"""

from collections.abc import Iterable
from functools import lru_cache

from endpointslice.types import Family
from proxy.kernel.attributes import pack_name, pack_nest
from proxy.kernel.batch import APPEND, CREATE, Message, Type
from proxy.kernel.expressions import (
    DROP,
    dnat_by_map,
    load_destination,
    load_port,
    load_protocol,
    load_random,
    register,
    verdict,
)
from proxy.kernel.ruleset import LAYOUTS, TABLE, Field, SetName, address_bytes, parse_pick

CHAIN_TABLE, CHAIN_NAME = 1, 3  # NFTA_CHAIN_*
RULE_TABLE, RULE_CHAIN, RULE_EXPRESSIONS = 1, 2, 4  # NFTA_RULE_*


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
    return (
        _dnat_rule(family, pick.endpoints, pick.size),
        _dnat_rule(family, pick.endpoints, 1),
        pack_nest(RULE_EXPRESSIONS, verdict(DROP)),
    )


def _dnat_rule(family: Family, endpoints: SetName, modulus: int) -> bytes:
    """`dnat ip to [ip daddr .] meta l4proto . th dport . numgen random mod N map @endpoints`."""
    word = 0  # the next free 4 bytes of the registers
    loads: list[bytes] = []
    for field in LAYOUTS[endpoints].key:
        loads.append(_load(field, family, register(word), modulus))
        word += address_bytes(family) // 4 if field is Field.ADDRESS else 1
    return pack_nest(RULE_EXPRESSIONS, *loads, dnat_by_map(family, endpoints))


def _load(field: Field, family: Family, into: int, modulus: int) -> bytes:
    """The expression that puts one field of the packet, or the random index, into a register."""
    match field:
        case Field.ADDRESS:
            return load_destination(family, into)
        case Field.PROTOCOL:
            return load_protocol(into)
        case Field.PORT:
            return load_port(into)
        case Field.INTERFACE:
            raise ValueError("no pick goes by interface")
        case Field.INDEX:
            return load_random(modulus, into)
