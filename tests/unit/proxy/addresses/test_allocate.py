"""Who gets which address: one sentence a case."""

from collections.abc import Iterable

import pytest

from endpointslice.types import IP, ServiceName
from proxy.addresses.allocate import Answer, Classes, World, allocate, is_ours
from proxy.addresses.requests import Rule
from proxy.addresses.types import DualStack, Namespace, Pool, PoolStatus, Service
from tests.unit.proxy.addresses.builders import BOTH, V4, V6, dual, namespace, pool, selector, service, wants_ip

FIRST = pool("first", "192.0.2.0-192.0.2.2")
OTHER = pool("other", "198.51.100.0/30")
DUAL = pool("dual", "192.0.2.0/30", "2001:db8::/126")
SIX = pool("six", "2001:db8:6::/126")
ONE = pool("one", "192.0.2.9/32")
KEY = {"allow-shared-ip": "k"}


def answer(
    pools: Iterable[Pool], services: Iterable[Service], namespaces: Iterable[Namespace] = (), **rest: object
) -> Answer:
    world = World(
        {one.name: one for one in services},
        {one.name: one for one in pools},
        {one.name: one for one in namespaces},
        **rest,  # type: ignore[arg-type]  # a World's own
    )
    return allocate(world)


def ips(found: Answer) -> dict[str, tuple[str, ...]]:
    """By the Service's name alone."""
    return {name.partition("/")[2]: grant.ips for name, grant in found.grants.items()}


def rules(found: Answer) -> dict[str, Rule]:
    return {name.partition("/")[2]: grant.refusal.rule for name, grant in found.grants.items() if grant.refusal}


def released(found: Answer) -> dict[str, Rule]:
    return {name.partition("/")[2]: grant.released.rule for name, grant in found.grants.items() if grant.released}


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


TAKEN = service("taken", "192.0.2.9")
OF_KEY = service("taken", "192.0.2.9", asks=KEY)
LOCAL = service("taken", "192.0.2.9", asks=KEY, backends="app=a")
OTHER_PORT = frozenset({("TCP", 81)})
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
