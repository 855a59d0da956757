"""A table of kube-proxy's nftables mode without its meaning: its chains, rules and elements, as values. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from endpointslice.types import Family
from proxy.kernel.attributes import parse_attributes, parse_name, parse_number
from proxy.kernel.dumps import Element, Unusable, pair_ranges
from proxy.verify.expressions import Rule, parse_rule

TABLE = "kube-proxy"
_HOOK, _HOOK_NUMBER = 4, 1  # NFTA_CHAIN_HOOK, NFTA_HOOK_HOOKNUM
_INTERVAL, _TIMEOUT = 0x4, 0x10  # NFT_SET_*


class SetShape(NamedTuple):
    """What a set or map is, but for its elements."""

    name: str
    interval: bool
    bindings: bool  # its elements come from packets and go by time
    timeout_s: int
    key_bytes: int


class Foreign(msgspec.Struct, frozen=True):
    """One family's table."""

    family: Family
    hooks: Mapping[str, int]  # base chains, and the hook of each (NF_INET_*)
    rules: Mapping[str, tuple[Rule, ...]]  # of every chain, also those without any
    elements: Mapping[str, Mapping[bytes, bytes]]  # of every set and map; an interval is first + last
    timeouts_s: Mapping[str, int]  # of sets that packets fill


def parse_shape(payload: bytes) -> SetShape:
    """A set or map, from a NEWSET."""
    found = parse_attributes(payload)
    flags = parse_number(found.get(3, b""))
    return SetShape(
        name=parse_name(found.get(2, b"")),
        interval=bool(flags & _INTERVAL),
        bindings=bool(flags & _TIMEOUT),
        timeout_s=parse_number(found.get(11, b"")) // 1000,
        key_bytes=parse_number(found.get(5, b"")),
    )


def parse_chains(payloads: Iterable[bytes]) -> tuple[dict[str, int], set[str]]:
    """The hooks of the table's base chains, and all its chains, from NEWCHAIN payloads of any table."""
    hooks: dict[str, int] = {}
    chains: set[str] = set()
    for payload in payloads:
        found = parse_attributes(payload)
        if parse_name(found.get(1, b"")) != TABLE:
            continue
        name = parse_name(found.get(3, b""))
        chains.add(name)
        if _HOOK in found:
            hooks[name] = parse_number(parse_attributes(found[_HOOK]).get(_HOOK_NUMBER, b""))
    return hooks, chains


def parse_rules(family: Family, payloads: Iterable[bytes]) -> dict[str, list[Rule]]:
    """The table's rules by chain, in their order, from NEWRULE payloads."""
    rules: dict[str, list[Rule]] = defaultdict(list)
    for payload in payloads:
        found = parse_attributes(payload)
        if parse_name(found.get(1, b"")) == TABLE:
            rules[parse_name(found.get(2, b""))].append(parse_rule(family, found.get(4, b"")))
    return rules


def pair_elements(shape: SetShape, elements: list[Element]) -> dict[bytes, bytes] | Unusable:
    """Key to data; verdicts are ASCII, such as b"goto service-X"."""
    if shape.interval:
        size = -(-shape.key_bytes // 4) * 4
        return pair_ranges(size, elements)
    found = {element.key: element.data for element in elements}
    return found if len(found) == len(elements) else Unusable.REPEATED
