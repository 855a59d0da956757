"""What a rule does, from its expressions as the kernel lists them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import Family, Protocol
from proxy.kernel.attributes import pack_attribute, pack_name, pack_nest, pack_u32
from proxy.kernel.expressions import (
    DROP,
    load_destination,
    load_port,
    load_protocol,
    load_random,
    load_source,
    match_protocol,
    pack_expression,
    verdict,
)
from proxy.verify.expressions import Do, Load, Match, Rule, parse_rule

V4, V6 = Family.IPV4, Family.IPV6
TCP = Match(Load.PROTOCOL, b"\6")
LOCAL = Match(Load.SOURCE_IS_LOCAL, b"\0\0\0\2")


def value(kind: int, data: bytes) -> bytes:
    return pack_nest(kind, pack_attribute(1, data))


def compare(data: bytes, *, unequal: bool = False) -> bytes:
    return pack_expression("cmp", pack_u32(1, 1), pack_u32(2, int(unequal)), value(3, data))


def look_up(name: str, into: int | None = None, *, inverted: bool = False) -> bytes:
    target = () if into is None else (pack_u32(3, into),)
    return pack_expression("lookup", pack_name(1, name), pack_u32(2, 1), *target, pack_u32(5, int(inverted)))


def goto(chain: str) -> bytes:
    code = pack_u32(1, 0xFFFFFFFC)
    return pack_expression("immediate", pack_u32(1, 0), pack_nest(2, pack_nest(2, code, pack_name(2, chain))))


def immediate(register: int, data: bytes) -> bytes:
    return pack_expression("immediate", pack_u32(1, register), value(2, data))


def nat(address: int, port: int, kind: int = 1) -> bytes:
    return pack_expression("nat", pack_u32(1, kind), pack_u32(2, 2), pack_u32(3, address), pack_u32(5, port))


def source(size: int) -> bytes:
    return pack_expression("payload", pack_u32(1, 1), pack_u32(2, 1), pack_u32(3, 12), pack_u32(4, size))


MASK = pack_expression("bitwise", pack_u32(1, 1), pack_u32(2, 1), pack_u32(3, 4), value(4, b"\xff\xff\xe0\0"))
SOURCE_IS_LOCAL = pack_expression("fib", pack_u32(1, 1), pack_u32(2, 3), pack_u32(3, 1)) + compare(b"\0\0\0\2")
LOAD_MARK = pack_expression("meta", pack_u32(2, 3), pack_u32(1, 1))
SET_MARK = LOAD_MARK + MASK + pack_expression("meta", pack_u32(2, 3), pack_u32(3, 1))
NEW = pack_expression("ct", pack_u32(1, 1), pack_u32(2, 0)) + compare(bytes(4), unequal=True)
VIP = load_destination(V4, 1) + load_protocol(9) + load_port(10)


@pytest.mark.parametrize(
    ("expressions", "rule"),
    [
        pytest.param(goto("x"), Rule(Do.GOTO, target="x"), id="goto"),
        pytest.param(
            VIP + look_up("service-ips", 0), Rule(Do.MAP, map="service-ips"), id="vmap by the packet's fields"
        ),
        pytest.param(
            load_random(3, 1) + look_up("__map0", 0), Rule(Do.MAP, map="__map0", draws=3), id="vmap by a random number"
        ),
        pytest.param(
            match_protocol(Protocol.TCP) + load_random(2, 1) + look_up("__map0", 1) + nat(1, 9),
            Rule(Do.DNAT, (TCP,), map="__map0", draws=2),
            id="dnat by a random number",
        ),
        pytest.param(
            match_protocol(Protocol.TCP) + immediate(1, b"\x0a\0\0\1") + immediate(2, b"\x1f\x90") + nat(1, 2),
            Rule(Do.DNAT, (TCP,), endpoint=b"\x0a\0\0\1\x1f\x90\0\0"),
            id="dnat to one endpoint",
        ),
        pytest.param(
            load_source(V4, 1) + look_up("affinity") + goto("e"),
            Rule(Do.GOTO, (Match(Load.SOURCE, set="affinity"),), target="e"),
            id="a binding",
        ),
        pytest.param(
            source(2) + compare(b"\x0a\xf4") + goto("s"),
            Rule(Do.GOTO, (Match(Load.SOURCE, b"\x0a\xf4"),), target="s"),
            id="pods by a network of whole bytes",
        ),
        pytest.param(
            source(4) + MASK + compare(b"\x0a\xf4\x20\0", unequal=True) + verdict(DROP),
            Rule(Do.DROP, (Match(Load.SOURCE, b"\x0a\xf4\x20\0", b"\xff\xff\xe0\0", negated=True),)),
            id="a firewall by a network of any length",
        ),
        pytest.param(
            load_source(V4, 1) + look_up("__set1", inverted=True) + verdict(DROP),
            Rule(Do.DROP, (Match(Load.SOURCE, set="__set1", negated=True),)),
            id="a firewall by a set",
        ),
        pytest.param(SOURCE_IS_LOCAL + goto("s"), Rule(Do.GOTO, (LOCAL,), target="s"), id="the host itself"),
        pytest.param(SOURCE_IS_LOCAL + SET_MARK, Rule(Do.MARK, (LOCAL,)), id="a mark"),
        pytest.param(pack_expression("reject", pack_u32(1, 0)), Rule(Do.REJECT), id="reject"),
        pytest.param(
            NEW + goto("c"),
            Rule(Do.GOTO, (Match(Load.OTHER, bytes(4), negated=True),), target="c"),
            id="new connections",
        ),
        pytest.param(load_source(V4, 1) + pack_expression("dynset"), Rule(Do.NOTHING), id="an update of a set"),
        pytest.param(immediate(1, b"\x0a\0\0\1") + nat(1, 2, kind=0), Rule(Do.UNKNOWN), id="snat is not understood"),
        pytest.param(load_destination(V4, 1) + nat(1, 2), Rule(Do.UNKNOWN), id="nor dnat to what isn't known"),
        pytest.param(pack_expression("tproxy"), Rule(Do.UNKNOWN), id="nor anything else"),
    ],
)
def test_what_a_rule_does(expressions: bytes, rule: Rule) -> None:
    assert parse_rule(V4, expressions) == rule


def test_registers_of_four_bytes_are_parts_of_those_of_sixteen() -> None:
    """The lookup's key begins in register 1, of which 8 is the first quarter (linux nf_tables.h)."""
    loads = pack_expression("payload", pack_u32(1, 8), pack_u32(2, 1), pack_u32(3, 8), pack_u32(4, 16))

    assert parse_rule(V6, loads + look_up("affinity") + goto("e")).matches == (Match(Load.SOURCE, set="affinity"),)


@given(st.binary(max_size=300))
def test_no_bytes_raise(expressions: bytes) -> None:
    assert isinstance(parse_rule(V4, expressions), Rule)


@given(st.binary(max_size=60), st.sampled_from(["payload", "lookup", "nat", "immediate", "cmp", "bitwise", "fib"]))
def test_no_bytes_in_an_expression_raise(data: bytes, name: str) -> None:
    assert isinstance(parse_rule(V6, pack_expression(name, data)), Rule)
