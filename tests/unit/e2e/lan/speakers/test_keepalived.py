"""keepalived's configuration."""

import re

from e2e.lan.members import VIPS, plan_nodes
from e2e.lan.speakers.keepalived import render_configuration


def test_lower_numbers_come_first_and_no_two_have_a_priority_in_common() -> None:
    found = [re.findall(r"priority (\d+)", render_configuration(node, 0.1)) for node in plan_nodes("x-", 5)]

    assert found == [["189"] * 2, ["188"] * 2, ["187"] * 2, ["186"] * 2, ["185"] * 2]


def test_each_family_has_an_instance_with_its_vip() -> None:
    text = render_configuration(plan_nodes("x-", 3)[0], 0.1)

    assert re.findall(r"vrrp_instance (\w+)", text) == ["ipv4", "ipv6"]
    assert f"{VIPS['ipv4']}/32 dev eth0" in text
    assert f"{VIPS['ipv6']}/128 dev eth0" in text


def test_whole_seconds_are_written_as_such() -> None:
    node = plan_nodes("x-", 2)[0]

    assert "advert_int 0.1\n" in render_configuration(node, 0.1)
    assert "advert_int 1\n" in render_configuration(node, 1.0)
