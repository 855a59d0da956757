"""Who gets which address: one sentence a case."""

import pytest

from proxy.addresses.allocate import Classes, is_ours
from proxy.addresses.requests import Rule
from proxy.addresses.types import DualStack, Pool, PoolStatus, Service
from tests.unit.proxy.addresses.allocating import (
    DUAL,
    FIRST,
    KEY,
    ONE,
    OTHER,
    OTHER_PORT,
    SIX,
    TAKEN,
    answer,
    ips,
    rules,
)
from tests.unit.proxy.addresses.builders import BOTH, V4, V6, dual, namespace, pool, selector, service, wants_ip

GIVEN = [
    pytest.param([FIRST], [service("a"), service("b")], {"a": ["192.0.2.0"], "b": ["192.0.2.1"]}, id="lowest first"),
    pytest.param(
        [FIRST],
        [service("a", created="2"), service("b", created="1")],
        {"a": ["192.0.2.1"], "b": ["192.0.2.0"]},
        id="the older Service chooses first",
    ),
    pytest.param(
        [FIRST],
        [service("a"), service("b", "192.0.2.0")],
        {"a": ["192.0.2.1"], "b": ["192.0.2.0"]},
        id="a holder keeps its address whoever is older",
    ),
    pytest.param(
        [pool("z", "192.0.2.8/32"), FIRST], [service("a")], {"a": ["192.0.2.0"]}, id="pools in the order of names"
    ),
    pytest.param(
        [FIRST, pool("z", "192.0.2.8/32", priority=9), pool("y", "192.0.2.7/32", priority=5)],
        [service("a")],
        {"a": ["192.0.2.7"]},
        id="the lowest priority first, and 0 last",
    ),
    pytest.param(
        [pool("z", "192.0.2.8/32", namespaces=frozenset({"shop"})), FIRST],
        [service("a")],
        {"a": ["192.0.2.8"]},
        id="a pool for its namespace before those for all",
    ),
    pytest.param(
        [pool("mine", "192.0.2.8/32", auto_assign=False), OTHER],
        [service("a")],
        {"a": ["198.51.100.0"]},
        id="autoAssign false isn't given out without asking",
    ),
    pytest.param(
        [pool("mine", "192.0.2.8/32", auto_assign=False), OTHER],
        [service("a", asks={"address-pool": "mine"}), service("b", asks=wants_ip("192.0.2.8"))],
        {"a": ["192.0.2.8"], "b": []},
        id="but to whom asks for the pool",
    ),
    pytest.param(
        [pool("buggy", "192.0.2.255-192.0.3.1", avoid_buggy_ips=True)],
        [service("a")],
        {"a": ["192.0.3.1"]},
        id="avoidBuggyIPs leaves .0 and .255 out",
    ),
    pytest.param([FIRST], [service("a", load_balancer_ip="192.0.2.2")], {"a": ["192.0.2.2"]}, id="spec.loadBalancerIP"),
    pytest.param(
        [FIRST],
        [service("a", annotations={"closeby.dev/loadBalancerIPs": "192.0.2.2"})],
        {"a": ["192.0.2.2"]},
        id="our own annotation",
    ),
    pytest.param(
        [FIRST],
        [service("a", annotations={"metallb.universe.tf/loadBalancerIPs": "192.0.2.2"})],
        {"a": ["192.0.2.2"]},
        id="the old annotation",
    ),
    pytest.param(
        [ONE],
        [service("a", "192.0.2.9", asks=KEY), service("b", asks=KEY, ports=frozenset({("TCP", 81)}))],
        {"a": ["192.0.2.9"], "b": ["192.0.2.9"]},
        id="an address shared by key",
    ),
    pytest.param(
        [ONE],
        [service("a", asks=KEY), service("b", asks=KEY, ports=frozenset({("UDP", 80)}))],
        {"a": ["192.0.2.9"], "b": ["192.0.2.9"]},
        id="the same port of another protocol",
    ),
    pytest.param([DUAL], [dual("a")], {"a": ["192.0.2.0", "2001:db8::"]}, id="dual stack from one pool, IPv4 first"),
    pytest.param(
        [FIRST, DUAL], [dual("a")], {"a": ["192.0.2.0", "2001:db8::"]}, id="a pool with both before one with one"
    ),
    pytest.param([FIRST, SIX], [dual("a")], {"a": ["192.0.2.0"]}, id="PreferDualStack takes the primary family"),
    pytest.param(
        [FIRST, SIX], [dual("a", families=(V6, V4))], {"a": ["2001:db8:6::"]}, id="whose primary family is IPv6"
    ),
    pytest.param([SIX], [dual("a")], {"a": ["2001:db8:6::"]}, id="or what there is"),
    pytest.param([FIRST, SIX], [service("a", families=(V6,))], {"a": ["2001:db8:6::"]}, id="a Service of IPv6 alone"),
    pytest.param(
        [DUAL], [dual("a", "192.0.2.2")], {"a": ["192.0.2.2", "2001:db8::"]}, id="the second family from the same pool"
    ),
    pytest.param(
        [DUAL],
        [dual("a", "192.0.2.2", policy=DualStack.REQUIRE)],
        {"a": ["192.0.2.2", "2001:db8::"]},
        id="also where it is required",
    ),
    pytest.param(
        [DUAL, pool("four", "203.0.113.0/30")],
        [dual("a", "203.0.113.1", policy=DualStack.REQUIRE)],
        {"a": ["192.0.2.0", "2001:db8::"]},
        id="another pool where both are required and its own has one",
    ),
    pytest.param(
        [DUAL, pool("four", "203.0.113.0/30")],
        [dual("a", "203.0.113.1")],
        {"a": ["203.0.113.1"]},
        id="no other pool where both are preferred",
    ),
    pytest.param(
        [DUAL],
        [dual("a", policy=DualStack.REQUIRE, asks=wants_ip("2001:db8::3", "192.0.2.3"))],
        {"a": ["192.0.2.3", "2001:db8::3"]},
        id="two addresses asked for",
    ),
    pytest.param([DUAL], [dual("a", asks=wants_ip("192.0.2.3"))], {"a": ["192.0.2.3"]}, id="one of two, as asked"),
    pytest.param(
        [FIRST],
        [service("a", "192.0.2.0", asks=wants_ip("192.0.2.2")), service("b", asks=wants_ip("192.0.2.0"))],
        {"a": ["192.0.2.2"], "b": ["192.0.2.0"]},
        id="what one gives up goes to the next at once",
    ),
    pytest.param(
        [FIRST],
        [service("z", "192.0.2.0", asks=wants_ip("192.0.2.2")), service("b", asks=wants_ip("192.0.2.0"))],
        {"z": ["192.0.2.2"], "b": ["192.0.2.0"]},
        id="also to one that was asked before it",
    ),
    pytest.param(
        [FIRST, OTHER],
        [service("a", "192.0.2.0", asks={"address-pool": "other"})],
        {"a": ["198.51.100.0"]},
        id="another pool asked for",
    ),
    pytest.param(
        [DUAL], [service("a", "192.0.2.1", "2001:db8::1")], {"a": ["192.0.2.1"]}, id="no more dual stack: one stays"
    ),
]


@pytest.mark.parametrize(("pools", "services", "given"), GIVEN)
def test_given(pools: list[Pool], services: list[Service], given: dict[str, list[str]]) -> None:
    found = answer(pools, services)

    assert ips(found) == {name: tuple(texts) for name, texts in given.items()}


REFUSED = [
    pytest.param([], service("a"), Rule.NO_POOLS, id="no pool at all"),
    pytest.param([pool("p", "192.0.2.8/32", auto_assign=False)], service("a"), Rule.NO_POOL_MATCHES, id="none for all"),
    pytest.param([ONE], service("a"), Rule.POOL_EXHAUSTED, id="all taken"),
    pytest.param([ONE], service("a", families=(V6,)), Rule.FAMILY_NOT_IN_POOL, id="no pool of the family"),
    pytest.param([ONE], service("a", families=()), Rule.NO_CLUSTER_IP, id="no ClusterIP"),
    pytest.param([ONE], dual("a", families=(V4,), policy=DualStack.REQUIRE), Rule.NOT_DUAL_STACK, id="not dual stack"),
    pytest.param([ONE, SIX], dual("a", policy=DualStack.REQUIRE), Rule.FAMILY_NOT_IN_POOL, id="both in no one pool"),
    pytest.param([ONE], service("a", asks={"address-pool": "two"}), Rule.NO_SUCH_POOL, id="an unknown pool"),
    pytest.param([ONE], service("a", asks=wants_ip("192.0.2.x")), Rule.UNREADABLE_ADDRESS, id="no address"),
    pytest.param([ONE], service("a", asks=wants_ip("2001:db8::")), Rule.FAMILY_MISMATCH, id="an IPv6 address for IPv4"),
    pytest.param(
        [ONE], service("a", asks=wants_ip("192.0.2.9", "192.0.2.8")), Rule.FAMILY_MISMATCH, id="two of one family"
    ),
    pytest.param([ONE], service("a", asks=wants_ip("192.0.2.8")), Rule.NOT_IN_A_POOL, id="an address of no pool"),
    pytest.param(
        [ONE, SIX],
        dual("a", asks=wants_ip("192.0.2.9", "2001:db8:6::1")),
        Rule.NOT_IN_ONE_POOL,
        id="addresses of two pools",
    ),
    pytest.param(
        [FIRST, OTHER],
        service("a", asks=wants_ip("192.0.2.1") | {"address-pool": "other"}),
        Rule.NOT_IN_ASKED_POOL,
        id="an address of one pool, and another pool",
    ),
    pytest.param(
        [ONE],
        service("a", asks=wants_ip("192.0.2.9"), load_balancer_ip="192.0.2.9"),
        Rule.AMBIGUOUS_REQUEST,
        id="asked for in two places",
    ),
    pytest.param(
        [ONE],
        service("a", asks={"address-pool": "one"}, annotations={"closeby.dev/address-pool": "two"}),
        Rule.AMBIGUOUS_REQUEST,
        id="twins that differ",
    ),
    pytest.param(
        [pool("p", "192.0.2.0/24", avoid_buggy_ips=True)],
        service("a", asks=wants_ip("192.0.2.255")),
        Rule.AVOIDED_ADDRESS,
        id="a buggy address asked for",
    ),
    pytest.param(
        [pool("p", "192.0.2.0/24", namespaces=frozenset({"bank"}))],
        service("a", asks=wants_ip("192.0.2.1")),
        Rule.POOL_NOT_ALLOWED,
        id="a pool of others by address",
    ),
    pytest.param(
        [pool("p", "192.0.2.0/24", namespaces=frozenset({"bank"}))],
        service("a", asks={"address-pool": "p"}),
        Rule.POOL_NOT_ALLOWED,
        id="a pool of others by name",
    ),
]


@pytest.mark.parametrize(("pools", "asker", "rule"), REFUSED)
def test_refused(pools: list[Pool], asker: Service, rule: Rule) -> None:
    found = answer(pools, [TAKEN, asker])

    assert rules(found)["a"] == rule
    assert ips(found)["a"] == ()


SELECTIVE = pool("p", "192.0.2.0/30", namespace_selectors=(selector(team="red"),))


@pytest.mark.parametrize(
    ("held", "asks"), [([], {}), ([], {"address-pool": "p"}), ([], wants_ip("192.0.2.1")), (["192.0.2.1"], {})]
)
def test_selectors_that_match_no_namespace_allow_nobody(held: list[str], asks: dict[str, str]) -> None:
    found = answer([SELECTIVE], [service("a", *held, asks=asks)], [namespace("shop", team="blue")])

    assert ips(found) == {"a": ()}


def test_a_namespace_is_chosen_by_name_or_by_label_and_a_service_by_label_besides() -> None:
    both = pool(
        "p",
        "192.0.2.0/28",
        namespaces=frozenset({"bank"}),
        namespace_selectors=(selector(team="red"),),
        service_selectors=(selector(tier="front"), selector(tier="edge")),
    )
    front, edge, back = (frozenset({("tier", text)}) for text in ("front", "edge", "back"))
    services = [
        service("bank/a", labels=front),
        service("shop/b", labels=edge),
        service("shop/c", labels=back),
        service("zoo/d", labels=front),
    ]

    found = answer([both], services, [namespace("shop", team="red"), namespace("zoo"), namespace("bank")])

    assert ips(found) == {"a": ("192.0.2.0",), "b": ("192.0.2.1",), "c": (), "d": ()}


@pytest.mark.parametrize(
    ("own", "classes", "ours"),
    [
        (None, Classes(), True),
        (None, Classes(classless=False), False),
        ("closeby.dev/l2", Classes(), True),
        ("closeby.dev/l2", Classes("other"), False),
        ("example.org/lb", Classes(), False),
        ("example.org/lb", Classes("example.org/lb", classless=False), True),
    ],
)
def test_whose_services_are_ours(own: str | None, classes: Classes, *, ours: bool) -> None:
    assert is_ours(service("a", load_balancer_class=own), classes) is ours


def test_a_service_of_another_type_is_nobodys() -> None:
    assert not is_ours(service("a", wants=False), Classes())


def test_usage_counts_addresses_and_not_services_and_fits_the_published_status() -> None:
    great = pool("great", "192.0.2.0/30", "2001:db8::/32")
    services = [
        service("a", asks=KEY),
        service("b", asks=KEY, ports=OTHER_PORT),
        dual("c", policy=DualStack.REQUIRE, families=BOTH),
    ]

    found = answer([great], services)

    assert found.usage == {"great": PoolStatus(2, 1, 2, (1 << 63) - 1)}
