"""The compiled base ruleset: what creates it, and whether tables found in the kernel are it. Pure.

It holds what the kernel listed after libnftables loaded base.nft, less handles and counts, so that sending it makes the
same tables and reading them back gives the same bytes.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from endpointslice.types import Family, Protocol
from proxy.kernel.attributes import iter_attributes, pack_attribute, pack_name, pack_u32, parse_attributes, parse_name
from proxy.kernel.batch import APPEND, CREATE, Message, Type
from proxy.kernel.picks import (
    CHAIN_NAME,
    CHAIN_TABLE,
    RULE_CHAIN,
    RULE_EXPRESSIONS,
    RULE_TABLE,
    pick_rules,
)
from proxy.kernel.ruleset import TABLE, parse_pick

TABLE_NAME, TABLE_FLAGS = 1, 2  # NFTA_TABLE_*
SET_TABLE, SET_NAME, SET_ID = 1, 2, 10  # NFTA_SET_*
SET_TIMEOUT = 11  # milliseconds in 8 bytes
# What makes a chain or set what it is; not handles, use counts and the like, which newer kernels add to.
_CHAIN_KEPT = frozenset({4, 5, 7, 10})  # hook, policy, type, flags
# Flags, key, data, policy, size, time-out, the typeof text, kind of object, counter.
_SET_KEPT = frozenset({3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 17, 18})
# What is compared with a table found: no one can change more than this of a live chain or set.
_CHAIN_COMPARED = frozenset({4, 5, 7})
_SET_COMPARED = frozenset({3, 4, 5, 6, 7, 17})


class Named(msgspec.Struct, frozen=True):
    """A chain or a set."""

    name: str
    attributes: bytes  # those that make it what it is, by type


class Rule(msgspec.Struct, frozen=True):
    """A rule of a chain."""

    chain: str
    expressions: bytes


class Tables(msgspec.Struct, frozen=True):
    """One family's table without elements."""

    chains: tuple[Named, ...]
    sets: tuple[Named, ...]
    rules: tuple[Rule, ...]  # in their order within each chain


class Base(msgspec.Struct, frozen=True):
    """The compiled ruleset of both families."""

    text: str  # digest of base.nft and affinity.nft when they were compiled
    families: Mapping[Family, Tables]
    affinities: Mapping[Family, Mapping[Protocol, bytes]]  # attributes of their maps


def layout_chain(base: Base) -> str:
    """The name of the empty chain that says which base a table has."""
    rules = msgspec.json.encode((base.families, base.affinities), order="sorted")
    digest = hashlib.sha256(rules).hexdigest()
    return f"layout_{digest[:12]}"


def text_digest(text: str) -> str:
    """What Base.text holds for these texts."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def plan_removal(families: Iterable[Family]) -> list[Message]:
    """Delete our tables whether they exist or not: a table is added first, so that the delete can't fail."""
    name = pack_name(TABLE_NAME, TABLE)
    return [
        message
        for family in families
        for message in (Message(Type.NEWTABLE, family, name, CREATE), Message(Type.DELTABLE, family, name))
    ]


def plan_tables(base: Base, families: Iterable[Family]) -> list[Message]:
    """Create our tables, their chains, sets and rules, without elements."""
    return [message for family in families for message in _plan_table(base, family)]


def expected_tables(base: Base, family: Family) -> Tables:
    """The table as plan_tables() makes it: the compiled one and, last of the chains, the one that names the layout."""
    tables = base.families[family]
    return msgspec.structs.replace(tables, chains=(*tables.chains, Named(layout_chain(base), b"")))


def _plan_table(base: Base, family: Family) -> Iterator[Message]:
    yield Message(Type.NEWTABLE, family, pack_name(TABLE_NAME, TABLE), CREATE)
    yield from plan_parts(family, expected_tables(base, family))


def plan_parts(family: Family, tables: Tables) -> Iterator[Message]:
    """Create these sets, chains and rules in our table."""
    for number, one in enumerate(tables.sets, 1):
        names = pack_name(SET_TABLE, TABLE) + pack_name(SET_NAME, one.name) + pack_u32(SET_ID, number)
        yield Message(Type.NEWSET, family, names + one.attributes, CREATE)
    for chain in tables.chains:
        names = pack_name(CHAIN_TABLE, TABLE) + pack_name(CHAIN_NAME, chain.name)
        yield Message(Type.NEWCHAIN, family, names + chain.attributes, CREATE)
    for rule in tables.rules:
        names = pack_name(RULE_TABLE, TABLE) + pack_name(RULE_CHAIN, rule.chain)
        yield Message(Type.NEWRULE, family, names + pack_attribute(RULE_EXPRESSIONS, rule.expressions), CREATE | APPEND)


def parse_chain(payload: bytes) -> Named | None:
    """A chain of our table, from a NEWCHAIN; None: another table's."""
    return _parse_named(payload, CHAIN_TABLE, CHAIN_NAME, _CHAIN_KEPT)


def parse_set(payload: bytes) -> Named | None:
    """A set of our table, from a NEWSET; None: another table's."""
    return _parse_named(payload, SET_TABLE, SET_NAME, _SET_KEPT)


def parse_rule(payload: bytes) -> Rule | None:
    """A rule of our table, from a NEWRULE; None: another table's."""
    found = parse_attributes(payload)
    if parse_name(found.get(RULE_TABLE, b"")) != TABLE:
        return None
    return Rule(parse_name(found.get(RULE_CHAIN, b"")), found.get(RULE_EXPRESSIONS, b""))


def _parse_named(payload: bytes, table: int, name: int, kept: frozenset[int]) -> Named | None:
    found = parse_attributes(payload)
    if parse_name(found.get(table, b"")) != TABLE:
        return None
    attributes = b"".join(pack_attribute(kind, found[kind]) for kind in sorted(kept & found.keys()))
    return Named(parse_name(found.get(name, b"")), attributes)


def find_pick_chains(family: Family, found: Tables, wanted: Tables) -> frozenset[str] | None:
    """The pick chains of a table that is `wanted` plus pick chains; None: it is something else."""
    picks = frozenset(chain.name for chain in found.chains if parse_pick(chain.name))
    wanted_rules = _by_chain(wanted.rules)
    for chain in picks:
        wanted_rules[chain] = [expressions[4:] for expressions in pick_rules(family, chain)]
    same = (
        _by_name(found.chains, _CHAIN_COMPARED)
        == _by_name((*wanted.chains, *(Named(chain, b"") for chain in picks)), _CHAIN_COMPARED)
        and _by_name(found.sets, _SET_COMPARED) == _by_name(wanted.sets, _SET_COMPARED)
        and _same_rules(_by_chain(found.rules), wanted_rules)
    )
    return picks if same else None


def _by_name(parts: Iterable[Named], compared: frozenset[int]) -> dict[str, dict[int, bytes]]:
    return {part.name: {k: v for k, v in parse_attributes(part.attributes).items() if k in compared} for part in parts}


def _by_chain(rules: Sequence[Rule]) -> dict[str, list[bytes]]:
    chains: dict[str, list[bytes]] = defaultdict(list)
    for rule in rules:
        chains[rule.chain].append(rule.expressions)
    return dict(chains)


def _same_rules(found: Mapping[str, Sequence[bytes]], wanted: Mapping[str, Sequence[bytes]]) -> bool:
    return found.keys() == wanted.keys() and all(
        len(found[chain]) == len(wanted[chain]) and all(map(same_expressions, found[chain], wanted[chain]))
        for chain in wanted
    )


def same_expressions(found: bytes, wanted: bytes) -> bool:
    """Whether a rule found does what `wanted` does, also where another kernel version lists it differently.

    Kernels differ in what they list without being asked: an attribute that only `found` has is skipped, and one that
    only `wanted` has counts as there if it is zero.
    """
    if found == wanted:
        return True
    ours, theirs = _parse_expressions(wanted), _parse_expressions(found)
    return len(ours) == len(theirs) and all(
        our_name == their_name
        and all(theirs_data.get(kind, bytes(len(value))) == value for kind, value in our_data.items())
        for (our_name, our_data), (their_name, theirs_data) in zip(ours, theirs, strict=True)
    )


def _parse_expressions(expressions: bytes) -> list[tuple[bytes, dict[int, bytes]]]:
    parsed = [parse_attributes(expressions, first, last) for _kind, first, last in iter_attributes(expressions)]
    return [(one.get(1, b""), parse_attributes(one.get(2, b""))) for one in parsed]  # NFTA_EXPR_NAME, _DATA
