"""The ruleset's text. What it compiles to is tested on the kernel."""

import pytest

from endpointslice.types import Family
from proxy.kernel.compile import affinity_text, base_text, encode_base, render_text
from proxy.kernel.netlink import load_base


@pytest.mark.parametrize(("family", "other"), [(Family.IPV4, "ip6 "), (Family.IPV6, "ip daddr")])
def test_each_family_gets_its_own_words(family: Family, other: str) -> None:
    rules = "\n".join(line for line in render_text(base_text(), family).splitlines() if not line.startswith("#"))

    assert "$" not in rules
    assert other not in rules


def test_every_set_is_declared_by_typeof_and_none_is_anonymous() -> None:
    """A set declared by type, written by nft 1.1.3, crashes nft 1.0.6."""
    text = base_text() + affinity_text()
    declared = [line for line in text.splitlines() if line.lstrip().startswith(("set ", "map "))]

    assert declared
    assert all("{ typeof " in line for line in declared)
    assert not [line for line in text.splitlines() if "{ " in line and line not in declared]


def test_the_base_is_kept_in_a_form_that_can_be_read_back() -> None:
    base = load_base()

    assert encode_base(base).endswith(b"}\n")
    assert base.families[Family.IPV4] != base.families[Family.IPV6]
