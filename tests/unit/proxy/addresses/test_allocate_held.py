"""Who keeps an address, shares it, or gives it up."""

import pytest

from endpointslice.types import IP, ServiceName
from proxy.addresses.requests import Rule
from proxy.addresses.types import Pool, Service
from tests.unit.proxy.addresses.allocating import (
    FIRST,
    KEY,
    LOCAL,
    OF_KEY,
    ONE,
    OTHER,
    OTHER_PORT,
    SIX,
    TAKEN,
    answer,
    ips,
    released,
    rules,
)
from tests.unit.proxy.addresses.builders import V4, pool, service, wants_ip


@pytest.mark.parametrize(
    ("holder", "fields", "rule"),
    [
        pytest.param(TAKEN, {}, Rule.ADDRESS_IN_USE, id="no keys"),
        pytest.param(TAKEN, {"asks": KEY}, Rule.ADDRESS_IN_USE, id="one key"),
        pytest.param(OF_KEY, {}, Rule.ADDRESS_IN_USE, id="the other key"),
        pytest.param(OF_KEY, {"asks": {"allow-shared-ip": "x"}}, Rule.SHARING_KEY_DIFFERS, id="another key"),
        pytest.param(OF_KEY, {"asks": KEY}, Rule.SHARING_PORT_TAKEN, id="the same port"),
        pytest.param(
            OF_KEY,
            {"asks": KEY, "ports": OTHER_PORT, "backends": "app=a"},
            Rule.SHARING_BACKENDS_DIFFER,
            id="Local beside Cluster",
        ),
        pytest.param(
            LOCAL,
            {"asks": KEY, "ports": OTHER_PORT, "backends": "app=b"},
            Rule.SHARING_BACKENDS_DIFFER,
            id="Local with other pods",
        ),
    ],
)
def test_an_address_in_use_is_refused_by_the_rule_of_sharing_that_fails(
    holder: Service, fields: dict[str, object], rule: Rule
) -> None:
    asker = service("a", asks=wants_ip("192.0.2.9") | fields.pop("asks", {}), **fields)  # type: ignore[operator]

    assert rules(answer([ONE], [holder, asker])) == {"a": rule}


def test_two_with_local_policy_and_the_same_pods_share() -> None:
    second = service("a", asks=KEY, ports=OTHER_PORT, backends="app=a")

    assert ips(answer([ONE], [LOCAL, second])) == {"taken": ("192.0.2.9",), "a": ("192.0.2.9",)}


def test_a_sole_holder_changes_its_key_in_place() -> None:
    found = answer([ONE], [service("a", "192.0.2.9", asks={"allow-shared-ip": "new"})])

    assert ips(found) == {"a": ("192.0.2.9",)}


def test_the_older_of_two_that_may_not_share_any_more_keeps_the_address() -> None:
    old = service("z", "192.0.2.0", created="1", asks=KEY)
    young = service("a", "192.0.2.0", created="2", asks=KEY)  # the same port, now

    found = answer([FIRST], [old, young])

    assert ips(found) == {"z": ("192.0.2.0",), "a": ("192.0.2.1",)}
    assert released(found) == {"a": Rule.SHARING_PORT_TAKEN}


@pytest.mark.parametrize(
    "asks",
    [
        pytest.param(wants_ip("192.0.2.77"), id="an address of no pool"),
        pytest.param(wants_ip("192.0.2.9"), id="an address in use"),
        pytest.param(wants_ip("nonsense"), id="no address"),
        pytest.param({"address-pool": "none"}, id="no pool"),
    ],
)
def test_what_is_held_is_given_up_only_for_what_can_be_had(asks: dict[str, str]) -> None:
    found = answer([FIRST, ONE], [TAKEN, service("a", "192.0.2.1", asks=asks)])

    assert ips(found)["a"] == ("192.0.2.1",)
    assert rules(found).keys() == {"a"}
    assert released(found) == {}


@pytest.mark.parametrize(
    ("pools", "holder", "rule"),
    [
        pytest.param([OTHER], service("a", "192.0.2.0"), Rule.NOT_IN_A_POOL, id="its pool went"),
        pytest.param(
            [pool("first", "192.0.2.0/30", namespaces=frozenset({"bank"})), OTHER],
            service("a", "192.0.2.0"),
            Rule.POOL_NOT_ALLOWED,
            id="its pool is for others now",
        ),
        pytest.param(
            [OTHER, SIX], service("a", "2001:db8:6::", families=(V4,)), Rule.FAMILY_MISMATCH, id="its family went"
        ),
    ],
)
def test_an_address_that_can_not_be_kept_is_replaced(pools: list[Pool], holder: Service, rule: Rule) -> None:
    found = answer(pools, [holder])

    assert ips(found) == {"a": ("198.51.100.0",)}
    assert released(found) == {"a": rule}


def test_nothing_is_taken_away_while_a_pool_is_there_that_nobody_can_read() -> None:
    holder = service("a", "192.0.2.200")

    assert ips(answer([OTHER], [holder], doubtful=True)) == {"a": ("192.0.2.200",)}
    assert ips(answer([OTHER], [holder])) == {"a": ("198.51.100.0",)}


def test_a_nodes_own_address_is_neither_given_nor_kept() -> None:
    reserved = frozenset({IP("192.0.2.0")})

    found = answer([FIRST], [service("a"), service("b", asks=wants_ip("192.0.2.0"))], reserved=reserved)

    assert ips(found) == {"a": ("192.0.2.1",), "b": ()}
    assert rules(found) == {"b": Rule.NODE_ADDRESS}
    holder = answer([FIRST], [service("a", "192.0.2.0")], reserved=reserved)
    assert ips(holder) == {"a": ("192.0.2.1",)}
    assert released(holder) == {"a": Rule.NODE_ADDRESS}


def test_a_freed_address_goes_to_the_one_that_waits() -> None:
    holder, waiter = service("a", "192.0.2.9"), service("b")

    assert ips(answer([ONE], [holder, waiter])) == {"a": ("192.0.2.9",), "b": ()}
    assert ips(answer([ONE], [waiter])) == {"b": ("192.0.2.9",)}


def test_two_that_want_each_others_address_keep_their_own() -> None:
    a, b = service("a", "192.0.2.0", asks=wants_ip("192.0.2.1")), service("b", "192.0.2.1", asks=wants_ip("192.0.2.0"))

    found = answer([FIRST], [a, b])

    assert ips(found) == {"a": ("192.0.2.0",), "b": ("192.0.2.1",)}
    assert rules(found) == {"a": Rule.ADDRESS_IN_USE, "b": Rule.ADDRESS_IN_USE}


def test_a_refusal_names_the_service_that_is_in_the_way() -> None:
    refusal = answer([ONE], [TAKEN, service("a", asks=wants_ip("192.0.2.9"))]).grants[ServiceName("shop/a")].refusal

    assert refusal is not None
    assert "192.0.2.9 is held by shop/taken" in refusal.what
