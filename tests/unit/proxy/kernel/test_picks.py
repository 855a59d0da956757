"""Pick chains as messages. That they are what nft makes of the text is tested on the kernel."""

import pytest

from endpointslice.types import Family
from proxy.kernel.attributes import parse_attributes
from proxy.kernel.batch import Type, describe
from proxy.kernel.picks import RULE_EXPRESSIONS, pick_rules, plan_pick_chains

NUMGEN_MOD = "08000200 0000{:04x} 08000300 00000001"  # NFTA_NG_MODULUS, NFTA_NG_TYPE random


def test_a_chain_comes_before_its_rules_and_chains_in_a_fixed_order() -> None:
    messages = plan_pick_chains({(Family.IPV6, "pick_2"), (Family.IPV4, "node_port_pick_9")})

    assert [describe(message) for message in messages] == [
        "newchain ip closeby node_port_pick_9",
        *["newrule ip closeby node_port_pick_9"] * 3,
        "newchain ip6 closeby pick_2",
        *["newrule ip6 closeby pick_2"] * 3,
    ]


def test_chains_of_the_base_are_not_made_here() -> None:
    assert not plan_pick_chains({(Family.IPV4, "refuse"), (Family.IPV4, "pick_0")})
    assert not pick_rules(Family.IPV4, "refuse")


@pytest.mark.parametrize("chain", ["pick_700", "node_port_pick_700", "local_source_pick_700"])
@pytest.mark.parametrize("family", Family)
def test_the_rules_are_mod_n_then_mod_1_then_drop(family: Family, chain: str) -> None:
    first, second, last = (rule.hex(" ", 4) for rule in pick_rules(family, chain))

    assert NUMGEN_MOD.format(700) in first
    assert NUMGEN_MOD.format(1) in second
    assert first.replace(NUMGEN_MOD.format(700), NUMGEN_MOD.format(1)) == second
    assert b"immediate".hex() in last.replace(" ", "")


def test_rules_are_appended_expressions() -> None:
    _chain, rule, *_others = plan_pick_chains({(Family.IPV4, "pick_1")})

    assert rule.kind is Type.NEWRULE
    assert RULE_EXPRESSIONS in parse_attributes(rule.payload)
