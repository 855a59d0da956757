"""Who lives on the LAN."""

import pytest

from e2e.lan.members import (
    SLOTS,
    VIPS,
    Family,
    cold_addresses,
    make_mac,
    name_of,
    plan_cold,
    plan_nodes,
    plan_router,
    plan_warm,
)


@pytest.mark.parametrize("family", list(Family))
def test_no_two_have_an_address_in_common_and_none_has_the_vip(family: Family) -> None:
    members = (*plan_nodes("x-", 9), plan_router("x-"), plan_warm("x-"))
    addresses = [*(member.address(family) for member in members), *cold_addresses(family), VIPS[family]]

    assert len(set(addresses)) == len(addresses) == 9 + 2 + SLOTS + 1


def test_the_cold_clients_own_address_is_the_first_that_it_asks_as() -> None:
    assert plan_cold("x-").address("ipv4") == cold_addresses("ipv4")[0]


@pytest.mark.parametrize("count", [0, 1, 10])
def test_a_lan_of_too_few_or_too_many_nodes_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="2 to 9 nodes"):
        plan_nodes("x-", count)


def test_a_mac_tells_its_node_in_every_generation_and_a_strangers_stays_what_it_is() -> None:
    nodes = plan_nodes("x-", 3)

    assert [name_of(make_mac(node.number, generation), nodes) for node in nodes for generation in (0, 1)] == [
        "node-1",
        "node-1",
        "node-2",
        "node-2",
        "node-3",
        "node-3",
    ]
    assert name_of("02:00:00:00:00:c8", nodes) == "02:00:00:00:00:c8"
