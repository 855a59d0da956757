"""What the ruleset's text must never say."""

import re

import pytest

from proxy.kernel.compile import base_text


@pytest.mark.parametrize(
    ("word", "why"),
    [
        # 92035: a mark outlived the encapsulation by VXLAN, and the outer packet was masqueraded too.
        # aws/amazon-vpc-cni-k8s#3563: an agent that routes by mark disagreed with the proxy's marks.
        pytest.param("mark", "a mark outlives a tunnel's encapsulation", id="a packet mark"),
        # 94861, 117924: dropping INVALID packets breaks asymmetric routes.
        pytest.param("invalid", "asymmetric routes need them", id="INVALID packets"),
    ],
)
def test_no_rule_speaks_of_it(word: str, why: str) -> None:
    rules = re.sub(r"#.*", "", base_text())

    assert not re.search(rf"\b{word}\b", rules), why
