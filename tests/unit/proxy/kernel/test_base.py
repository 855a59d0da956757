"""The compiled base: that it is of this text, and that any edit of a table found is noticed."""

from collections.abc import Callable

import msgspec
import pytest

from endpointslice.types import Family
from proxy.kernel.attributes import pack_attribute, pack_name, pack_nest, pack_u32
from proxy.kernel.base import (
    Base,
    Named,
    Rule,
    Tables,
    expected_tables,
    find_pick_chains,
    layout_chain,
    parse_chain,
    parse_rule,
    parse_set,
    plan_removal,
    plan_tables,
    same_expressions,
    text_digest,
)
from proxy.kernel.batch import describe
from proxy.kernel.compile import affinity_text, base_text
from proxy.kernel.netlink import load_base
from proxy.kernel.picks import pick_rules

WANTED = expected_tables(load_base(), Family.IPV4)
PICK = Named("pick_3", b"")
PICK_RULES = tuple(Rule("pick_3", rule[4:]) for rule in pick_rules(Family.IPV4, "pick_3"))
GROWN = msgspec.structs.replace(WANTED, chains=(*WANTED.chains, PICK), rules=(*WANTED.rules, *PICK_RULES))

replace = msgspec.structs.replace


def test_the_compiled_base_is_of_the_text_beside_it() -> None:
    """Else: python -m proxy.kernel.compile, as root."""
    assert load_base().text == text_digest(base_text() + affinity_text())


def test_the_layout_chain_names_the_compiled_rules() -> None:
    base = load_base()
    tables = base.families[Family.IPV6]
    fewer = Base(base.text, {**base.families, Family.IPV6: replace(tables, rules=tables.rules[1:])}, base.affinities)

    assert layout_chain(base) == layout_chain(load_base())
    assert layout_chain(base) != layout_chain(fewer)
    assert layout_chain(base) in [chain.name for chain in WANTED.chains]


def test_tables_are_made_in_an_order_that_the_kernel_can_follow() -> None:
    messages = [describe(message) for message in plan_tables(load_base(), [Family.IPV4])]

    kinds = [message.split()[0] for message in messages]
    assert kinds == sorted(kinds, key=["newtable", "newset", "newchain", "newrule"].index)
    assert messages[0] == "newtable ip closeby"


def test_removal_can_not_fail_for_want_of_a_table() -> None:
    assert [describe(message) for message in plan_removal([Family.IPV4, Family.IPV6])] == [
        "newtable ip closeby",
        "deltable ip closeby",
        "newtable ip6 closeby",
        "deltable ip6 closeby",
    ]


def test_a_table_as_installed_is_ours_with_its_pick_chains() -> None:
    assert find_pick_chains(Family.IPV4, WANTED, WANTED) == frozenset()
    assert find_pick_chains(Family.IPV4, GROWN, WANTED) == frozenset({"pick_3"})


def drop_first_rule(tables: Tables) -> Tables:
    return replace(tables, rules=tables.rules[1:])


def swap_rules(tables: Tables) -> Tables:
    first, second, *others = tables.rules
    return replace(tables, rules=(second, first, *others))


def edit_hook(tables: Tables) -> Tables:
    at = next(index for index, chain in enumerate(tables.chains) if chain.name == "postrouting")
    moved = Named("postrouting", tables.chains[at].attributes.replace(b"\0\0\0\x64", b"\0\0\0\x65"))
    return replace(tables, chains=(*tables.chains[:at], moved, *tables.chains[at + 1 :]))


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(lambda _tables: Tables((), (), ()), id="no table"),
        pytest.param(drop_first_rule, id="a rule deleted"),
        pytest.param(swap_rules, id="two rules in the other order"),
        pytest.param(edit_hook, id="a chain of another priority"),
        pytest.param(lambda t: replace(t, rules=(*t.rules, t.rules[0])), id="a rule added"),
        pytest.param(lambda t: replace(t, rules=(*t.rules, Rule("pick_3", b""))), id="a rule added to a pick chain"),
        pytest.param(lambda t: replace(t, rules=t.rules[:-1]), id="the drop of a pick chain deleted"),
        pytest.param(lambda t: replace(t, chains=t.chains[1:]), id="a chain deleted"),
        pytest.param(lambda t: replace(t, chains=(*t.chains, Named("mine", b""))), id="a chain added"),
        pytest.param(lambda t: replace(t, chains=(*t.chains, Named("pick_4", b""))), id="a pick chain without rules"),
        pytest.param(lambda t: replace(t, sets=t.sets[1:]), id="a set deleted"),
        pytest.param(lambda t: replace(t, sets=(*t.sets, Named("mine", b""))), id="a set added"),
        pytest.param(
            lambda t: replace(t, sets=(Named(t.sets[0].name, t.sets[1].attributes), *t.sets[1:])),
            id="a set of another key",
        ),
        pytest.param(
            lambda t: replace(t, chains=tuple(c for c in t.chains if not c.name.startswith("layout_"))),
            id="another layout",
        ),
    ],
)
def test_a_table_that_someone_edited_is_not_ours(edit: Callable[[Tables], Tables]) -> None:
    assert find_pick_chains(Family.IPV4, edit(GROWN), WANTED) is None


def expression(name: str, *data: bytes) -> bytes:
    return pack_nest(1, pack_name(1, name), pack_nest(2, *data))


LOOKUP = expression("lookup", pack_name(1, "endpoints"), pack_u32(2, 1), pack_u32(5, 0))


@pytest.mark.parametrize(
    ("found", "same"),
    [
        pytest.param(LOOKUP, True, id="the same bytes"),
        pytest.param(
            expression("lookup", pack_name(1, "endpoints"), pack_u32(2, 1)), True, id="a zero that is not listed"
        ),
        pytest.param(
            expression("lookup", pack_name(1, "endpoints"), pack_u32(2, 1), pack_u32(5, 0), pack_u32(77, 9)),
            True,
            id="an attribute of a newer kernel",
        ),
        pytest.param(
            expression("lookup", pack_u32(5, 0), pack_u32(2, 1), pack_name(1, "endpoints")), True, id="another order"
        ),
        pytest.param(
            expression("lookup", pack_name(1, "endpoints"), pack_u32(2, 1), pack_u32(5, 1)), False, id="a flag set"
        ),
        pytest.param(expression("lookup", pack_name(1, "endpoints")), False, id="a number missing"),
        pytest.param(expression("dynset", pack_name(1, "endpoints"), pack_u32(2, 1)), False, id="another expression"),
        pytest.param(LOOKUP + LOOKUP, False, id="one more"),
        pytest.param(b"", False, id="none"),
    ],
)
def test_expressions_are_compared_across_kernels(found: bytes, *, same: bool) -> None:
    assert same_expressions(found, LOOKUP) == same


def test_what_is_listed_of_other_tables_is_not_ours() -> None:
    other = pack_name(1, "kube-proxy") + pack_name(2, "x") + pack_name(3, "x")

    assert (parse_chain(other), parse_set(other), parse_rule(other)) == (None, None, None)


def test_handles_and_counts_are_no_part_of_a_chain_or_set() -> None:
    table = pack_name(1, "closeby")
    chain = table + pack_attribute(2, bytes(8)) + pack_name(3, "output") + pack_u32(5, 1) + pack_u32(6, 9)
    one = table + pack_name(2, "hairpin") + pack_u32(4, 8) + pack_attribute(16, bytes(8)) + pack_name(19, "rhash")

    assert parse_chain(chain) == Named("output", pack_u32(5, 1))
    assert parse_set(one) == Named("hairpin", pack_u32(4, 8))
