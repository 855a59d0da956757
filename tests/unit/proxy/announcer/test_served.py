"""What of a Snapshot there is to announce, and the table that an announcer makes of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from endpointslice.snapshot import EMPTY, Snapshot
from endpointslice.types import (
    IP,
    Family,
    Node,
    NodeName,
    Service,
    ServiceName,
    Slice,
    SliceEndpoint,
    SliceName,
    TrafficDistribution,
    TrafficPolicy,
)
from proxy.announcer.around import Around
from proxy.announcer.served import (
    Place,
    Said,
    Served,
    TableMaker,
    know_own_node,
    list_served,
    make_table,
    named_interfaces,
    used_wires,
)
from proxy.l2.candidates import Demand, NodeFacts, Options, Reach, Why, judge
from proxy.l2.types import Channel, Key, Tier

N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")
VIP, OTHER = IP("192.0.2.10"), IP("198.51.100.10")
WEB = Service(ServiceName("default/web"), (IP("10.96.0.1"),), (), load_balancer_ips=(VIP,))
LOCAL = TrafficPolicy.LOCAL
LAN = Channel("192.0.2.0/24")
SHARING = Options(shares=True)
KEY = Key(VIP, LAN)
HERE = Place(N1, {LAN: "eth0"}, ["eth0", "eth1"])


def endpoint(last: int, node: str | None, *, ready: bool = True, draining: bool = False) -> SliceEndpoint:
    name = NodeName(node) if node is not None else None
    return SliceEndpoint(IP(f"10.244.0.{last}"), ready and not draining, ready or draining, draining, name)


def snapshot(*services: Service, endpoints: tuple[SliceEndpoint, ...] = (), node: Node | None = None) -> Snapshot:
    slices = {
        service.name: {
            SliceName(f"{service.name}-x"): Slice(
                SliceName(f"{service.name}-x"), service.name, Family.IPV4, (), endpoints
            )
        }
        for service in services
    }
    nodes = {node.name: node} if node is not None else {}
    return replace(EMPTY, services={service.name: service for service in services}, slices=slices, nodes=nodes)


def test_endpoints_are_counted_by_node() -> None:
    world = snapshot(
        WEB,
        endpoints=(
            endpoint(1, "n1"),
            endpoint(2, "n1"),
            endpoint(3, "n2", draining=True),
            endpoint(4, "n3", ready=False),
            endpoint(5, None),
        ),
    )

    assert list_served(world)[VIP].demand == Demand(ready={N1: 2}, draining=frozenset({N2}), elsewhere=True)


def test_a_service_without_a_load_balancer_address_is_nobodys_business() -> None:
    assert not list_served(snapshot(replace(WEB, load_balancer_ips=())))


def test_policies_are_told() -> None:
    close = replace(WEB, external_traffic_policy=LOCAL, traffic_distribution=TrafficDistribution.PREFER_CLOSE)

    demand = list_served(snapshot(close))[VIP].demand

    assert (demand.local, demand.prefer_close) == (True, True)


def test_nodes_that_a_service_asks_for_are_told() -> None:
    asking = replace(WEB, announce_on=frozenset({N2}), prefer_nodes=((N2, 50),))

    served = list_served(snapshot(asking, endpoints=(endpoint(1, "n1"),)))
    vip = make_table(Said(served), HERE._replace(members=[N2])).vips[Key(VIP, LAN)]

    assert vip.mine.why is Why.PINNED_ELSEWHERE
    assert [(other.why, other.preference) for other in vip.others] == [(Why.ELIGIBLE, 50)]


def test_two_services_at_one_address_need_a_node_that_serves_both_under_policy_local() -> None:
    web, dns = (
        replace(WEB, name=ServiceName(f"default/{name}"), external_traffic_policy=LOCAL) for name in ("web", "dns")
    )
    one = snapshot(web, endpoints=(endpoint(1, "n1"), endpoint(2, "n2")))
    two = snapshot(dns, endpoints=(endpoint(3, "n2"), endpoint(4, "n3")))
    both = replace(one, services={**one.services, **two.services}, slices={**one.slices, **two.slices})

    assert list_served(both)[VIP].demand.ready == {N2: 2}


def test_a_node_that_is_not_ready_says_so() -> None:
    world = snapshot(WEB, endpoints=(endpoint(1, "n2"),), node=Node(N1, ready=False))

    table = make_table(Said(list_served(world), know_own_node(world, N1)), HERE)

    assert table.vips[Key(VIP, LAN)].mine.why is Why.NOT_READY


def test_members_and_nodes_with_endpoints_are_candidates() -> None:
    served = list_served(snapshot(WEB, endpoints=(endpoint(1, "n2"),)))

    vip = make_table(Said(served), HERE._replace(members=[N1, N3])).vips[Key(VIP, LAN)]

    assert (vip.mine.node, vip.mine.why, vip.mine.tier) == (N1, Why.ELIGIBLE, Tier.NONE)
    assert [(other.node, other.tier) for other in vip.others] == [(N2, Tier.READY), (N3, Tier.NONE)]


def test_an_address_in_no_subnet_of_ours_is_left_out() -> None:
    served = list_served(snapshot(replace(WEB, load_balancer_ips=(OTHER,)), endpoints=(endpoint(1, "n1"),)))

    assert not make_table(Said(served), HERE).vips
    assert not used_wires(served, [LAN])


def around(*facts: NodeFacts, **reaches: Reach) -> Around:
    return Around({one.node: one for one in facts}, whole=bool(facts), reaches=reaches)


def test_each_node_is_judged_by_its_own_facts() -> None:
    served = list_served(snapshot(WEB, endpoints=(endpoint(1, "n2"),)))
    known = around(NodeFacts(N1, excluded=True), NodeFacts(N2, out_of_service=True))

    vip = make_table(Said(served, known), HERE._replace(members=[N3])).vips[Key(VIP, LAN)]

    assert vip.mine.why is Why.EXCLUDED
    assert {other.node: other.why for other in vip.others} == {N2: Why.OUT_OF_SERVICE, N3: Why.NO_NODE}


@pytest.mark.parametrize(
    ("reach", "demand", "options", "shared", "why"),
    [
        pytest.param(Reach(spread=True), Demand(elsewhere=True), SHARING, True, "", id="asked for"),
        pytest.param(Reach(), Demand(elsewhere=True), SHARING, False, "", id="not asked for"),
        pytest.param(
            Reach(spread=True), Demand(elsewhere=True), Options(), False, "not-enabled", id="the flag isn't given"
        ),
        pytest.param(
            Reach(spread=True),
            Demand(elsewhere=True, sticky=True),
            SHARING,
            False,
            "session-affinity",
            id="contradicted by the Service",
        ),
    ],
)
def test_an_address_is_shared_if_its_advertisements_ask_for_it_and_nothing_contradicts(
    reach: Reach, demand: Demand, options: Options, why: str, *, shared: bool
) -> None:
    said = Said({VIP: Served(VIP, demand, "a")}, around(a=reach))

    vip = make_table(said, HERE._replace(options=options)).vips[KEY]

    assert (vip.shared, vip.not_shared) == (shared, why)


def test_where_no_node_is_known_all_are_as_good() -> None:
    served = list_served(snapshot(WEB, endpoints=(endpoint(1, "n2"),)))

    vip = make_table(Said(served), HERE._replace(members=[N3])).vips[Key(VIP, LAN)]

    assert {one.why for one in (vip.mine, *vip.others)} == {Why.ELIGIBLE}


@pytest.mark.parametrize(
    ("allowed", "why"),
    [
        pytest.param(None, Why.ELIGIBLE, id="any"),
        pytest.param({"eth0", "eth9"}, Why.ELIGIBLE, id="the one in the subnet"),
        pytest.param({"eth1"}, Why.OTHER_INTERFACE, id="another that is there"),
        pytest.param({"eth9"}, Why.UNKNOWN_INTERFACE, id="one that isn't"),
    ],
)
def test_only_interfaces_that_are_named_answer(allowed: set[str] | None, why: Why) -> None:
    served = list_served(snapshot(WEB, endpoints=(endpoint(1, "n1"),)))
    reach = Reach(interfaces={N1: frozenset(allowed)} if allowed else {})
    told = Said({vip: replace(one, reach="lan") for vip, one in served.items()}, around(lan=reach))

    assert make_table(told, HERE).vips[Key(VIP, LAN)].mine.why is why
    assert named_interfaces(told.around, N1) == (allowed or set())


@pytest.mark.parametrize(
    ("facts", "ready"),
    [
        pytest.param([NodeFacts(N2), NodeFacts(N3)], True, id="all others"),
        pytest.param([NodeFacts(N2), NodeFacts(N3, ready_now=False)], False, id="not one of them"),
        pytest.param([NodeFacts(N2)], False, id="one has no Node"),
        pytest.param([], False, id="Nodes aren't known"),
    ],
)
def test_whether_the_api_says_that_the_others_are_ready(facts: list[NodeFacts], *, ready: bool) -> None:
    place = HERE._replace(members=[N1, N2, N3])

    assert make_table(Said({}, around(NodeFacts(N1, ready_now=False), *facts)), place).peers_ready is ready


THERE = HERE._replace(members=[N2, N3])
NODES = [N1, N2, N3, NodeName("n4")]
nodes = st.sampled_from(NODES)
demands = st.builds(
    Demand,
    local=st.booleans(),
    prefer_close=st.booleans(),
    pinned=st.frozensets(nodes, max_size=2),
    preferred=st.dictionaries(nodes, st.integers(1, 3), max_size=2),
    ready=st.dictionaries(nodes, st.integers(1, 3), max_size=2),
    draining=st.frozensets(nodes, max_size=2),
    elsewhere=st.booleans(),
)
tables = st.dictionaries(st.integers(1, 5).map(lambda last: IP(f"192.0.2.{last}")), demands)


@given(st.lists(st.tuples(tables, st.sets(nodes)), min_size=1, max_size=4))
def test_every_node_is_judged_by_the_whole_demand_however_tables_follow(
    steps: list[tuple[dict[IP, Demand], set[NodeName]]],
) -> None:
    maker = TableMaker()
    for wanted, members in steps:
        served = {vip: Served(vip, demand) for vip, demand in wanted.items()}

        table = maker.make(Said(served), HERE._replace(members=frozenset(members)))

        for vip, demand in wanted.items():
            made = table.vips[Key(vip, LAN)]
            named = (members | demand.ready.keys() | demand.draining) - {N1}
            assert made.mine == judge(NodeFacts(N1), demand, Options())
            assert made.others == tuple(judge(NodeFacts(node), demand, Options()) for node in sorted(named))


def test_what_is_served_as_before_is_the_same_object_in_the_next_table() -> None:
    first, second, third = (Served(IP(f"192.0.2.{last}"), Demand(ready={N2: 1})) for last in range(1, 4))
    maker = TableMaker()
    before = maker.make(Said({one.vip: one for one in (first, second, third)}), THERE).vips

    told = (Served(first.vip, Demand(ready={N3: 1})), Served(second.vip, Demand(ready={N2: 1})), third)
    after = maker.make(Said({one.vip: one for one in told}), THERE).vips

    assert [before[key] is after[key] for key in before] == [False, True, True]


def test_many_addresses_share_the_candidates_that_nothing_is_said_of() -> None:
    served = [Served(IP(f"192.0.2.{last}"), Demand(elsewhere=True)) for last in range(1, 4)]

    vips = make_table(Said({one.vip: one for one in served}), THERE).vips.values()

    assert len({id(vip.others) for vip in vips}) == 1
