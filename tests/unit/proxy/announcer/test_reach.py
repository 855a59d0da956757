"""Which L2Advertisements apply to an address, and what they say together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.addresses import family_of
from endpointslice.types import IP, Labels, NodeName, ServiceName
from proxy.addresses.ranges import parse_range
from proxy.addresses.types import (
    Advertisement,
    NodeState,
    Operator,
    Pool,
    Preference,
    Range,
    Requirement,
    Selector,
)
from proxy.announcer.reach import ANYWHERE, NOWHERE, Advertising, combine
from proxy.l2.candidates import Reach

WEB = ServiceName("default/web")
N1, N2, N3 = (NodeName(f"n{number}") for number in (1, 2, 3))


def labels(**pairs: str) -> Labels:
    return frozenset(pairs.items())


def has(key: str, *values: str) -> Selector:
    return (Requirement(key, Operator.IN, frozenset(values)),)


def pool(name: str, *texts: str, **pairs: str) -> Pool:
    ranges = []
    for text in texts:
        found = parse_range(text)
        assert isinstance(found, Range)
        ranges.append(found)
    return Pool(name, tuple(ranges), labels=labels(**pairs))


OFFICE = pool("office", "192.0.2.16/28", "192.0.2.40-192.0.2.49", "2001:db8::/112", use="office")
LAB = pool("lab", "198.51.100.0/30", use="lab")
NODES = [
    NodeState(N1, labels(rack="a", disk="ssd")),
    NodeState(N2, labels(rack="b")),
    NodeState(N3, labels(rack="b", disk="ssd")),
]


def advertising(*advertisements: Advertisement, **services: Labels) -> Advertising:
    held = {ServiceName(f"default/{name}"): found for name, found in services.items()}
    return Advertising({one.name: one for one in (OFFICE, LAB)}, {one.name: one for one in advertisements}, held)


@pytest.mark.parametrize(
    ("vip", "name"),
    [
        ("192.0.2.15", None),
        ("192.0.2.16", "office"),
        ("192.0.2.31", "office"),
        ("192.0.2.32", None),
        ("192.0.2.49", "office"),
        ("192.0.2.50", None),
        ("198.51.100.3", "lab"),
        ("2001:db8::ffff", "office"),
        ("2001:db8::1:0", None),
        ("::c000:210", None),
    ],
)
def test_the_pool_of_an_address_is_found(vip: str, name: str | None) -> None:
    found = advertising().pool_of(IP(vip))

    assert (found.name if found is not None else None) == name


@given(st.ip_addresses().map(lambda ip: IP(str(ip))))
def test_an_address_has_the_pool_whose_range_holds_it(vip: IP) -> None:
    found = parse_range(f"{vip}-{vip}")
    assert isinstance(found, Range)
    holding: list[str | None] = [
        held.name
        for held in (OFFICE, LAB)
        for one in held.ranges
        if one.family is family_of(vip) and one.first <= found.first <= one.last
    ]

    pool_ = advertising().pool_of(vip)

    assert [pool_.name if pool_ is not None else None] == (holding or [None])


@pytest.mark.parametrize(
    ("advertisements", "name"),
    [
        pytest.param([], NOWHERE, id="none at all"),
        pytest.param([Advertisement("all")], "all", id="one for all pools"),
        pytest.param([Advertisement("a", pools=frozenset({"office"}))], "a", id="one that names the pool"),
        pytest.param([Advertisement("a", pools=frozenset({"lab"}))], NOWHERE, id="one that names another"),
        pytest.param([Advertisement("a", pool_selectors=(has("use", "office"),))], "a", id="one that selects the pool"),
        pytest.param(
            [Advertisement("a", pools=frozenset({"lab"}), pool_selectors=(has("use", "office"),))],
            "a",
            id="names and selectors are united",
        ),
        pytest.param([Advertisement("b"), Advertisement("a")], "a,b", id="several, by name"),
        pytest.param([Advertisement("a", service_selectors=(has("app", "web"),))], "a", id="one for such Services"),
        pytest.param([Advertisement("a", service_selectors=(has("app", "db"),))], NOWHERE, id="one for other Services"),
        pytest.param(
            [Advertisement("a", service_selectors=(has("app", "db"), has("app", "web")))], "a", id="selectors are or-ed"
        ),
    ],
)
def test_advertisements_of_an_address(advertisements: list[Advertisement], name: str) -> None:
    found = advertising(*advertisements, web=labels(app="web"))

    assert found.name_reach(IP("192.0.2.20"), [WEB]) == name


def test_an_address_of_no_pool_is_announced_anywhere() -> None:
    found = advertising()

    assert found.name_reach(IP("203.0.113.1"), [WEB]) == ANYWHERE
    assert found.spell_reach(ANYWHERE, NODES) == Reach()


def test_an_advertisement_for_one_of_the_services_at_an_address_is_for_the_address() -> None:
    found = advertising(
        Advertisement("a", service_selectors=(has("app", "db"),)), web=labels(app="web"), db=labels(app="db")
    )

    assert found.name_reach(IP("192.0.2.20"), [WEB, ServiceName("default/db")]) == "a"


def test_where_no_advertisement_applies_nobody_announces() -> None:
    assert advertising().spell_reach(NOWHERE, NODES) == Reach(nodes=frozenset())


SSD, RACK_B = has("disk", "ssd"), has("rack", "b")


@pytest.mark.parametrize(
    ("advertisements", "reach"),
    [
        pytest.param([Advertisement("a")], Reach(), id="all nodes, all interfaces"),
        pytest.param([Advertisement("a", node_selectors=(RACK_B,))], Reach(frozenset({N2, N3})), id="some nodes"),
        pytest.param(
            [Advertisement("a", node_selectors=(RACK_B, has("rack", "a")))], Reach(), id="node selectors are or-ed"
        ),
        pytest.param(
            [Advertisement("a", preferences=(Preference(30, SSD), Preference(5, RACK_B)))],
            Reach(weights={N1: 30, N2: 5, N3: 35}),
            id="weights that match add up",
        ),
        pytest.param(
            [
                Advertisement("a", node_selectors=(RACK_B,), preferences=(Preference(30, SSD),)),
                Advertisement("b", preferences=(Preference(2, SSD),)),
            ],
            Reach(weights={N1: 2, N3: 32}),
            id="of advertisements that select the node",
        ),
        pytest.param(
            [
                Advertisement("a", node_selectors=(RACK_B,), interfaces=frozenset({"eth1"})),
                Advertisement("b", interfaces=frozenset({"eth0"})),
            ],
            Reach(
                interfaces={N1: frozenset({"eth0"}), N2: frozenset({"eth0", "eth1"}), N3: frozenset({"eth0", "eth1"})}
            ),
            id="interfaces of advertisements that select the node",
        ),
        pytest.param(
            [Advertisement("a", interfaces=frozenset({"eth1"})), Advertisement("b", node_selectors=(RACK_B,))],
            Reach(interfaces={N1: frozenset({"eth1"})}),
            id="one without interfaces allows all",
        ),
        pytest.param([Advertisement("a", spreads=True)], Reach(spread=True), id="clients are to be spread"),
        pytest.param(
            [Advertisement("a", spreads=True), Advertisement("b", spreads=True)], Reach(spread=True), id="all say so"
        ),
        pytest.param(
            [Advertisement("a", spreads=True, node_selectors=(RACK_B,)), Advertisement("b")],
            Reach(spread=True, disagrees=True),
            id="one says so, and another doesn't, whatever nodes they select",
        ),
    ],
)
def test_what_advertisements_say_together(advertisements: list[Advertisement], reach: Reach) -> None:
    assert combine(advertisements, NODES) == reach
