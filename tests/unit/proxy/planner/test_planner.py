"""The planner over time: what it keeps up to date is what it would plan anew."""

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from endpointslice.daemonsets import HOLD_S
from endpointslice.snapshot import EMPTY, Changed, Snapshot, apply_events
from endpointslice.topology import Tier
from endpointslice.types import (
    CIDR,
    IP,
    Kind,
    Node,
    NodeName,
    Object,
    Service,
    ServiceCIDR,
    TrafficDistribution,
    TrafficPolicy,
    Zone,
)
from proxy.kernel.change import Change, Installed, apply_change
from proxy.kernel.ruleset import LAYOUTS, Data, SetId
from proxy.planner.fragments import Held
from proxy.planner.planner import NOTHING, Moment, Planner, plan_all
from proxy.planner.settings import Settings
from tests.builders import a_slice, daemon_set, pod, service, slice_endpoint
from tests.elements_text import show_elements
from tests.small_worlds import NODE, small_changes
from tests.strategies import kind_of

SETTINGS = Settings(NODE, cluster_cidrs=(CIDR("10.244.0.0/16"),))
CLOSE = TrafficDistribution.PREFER_CLOSE


def put(*objects: Object) -> list[Changed]:
    return [Changed(kind_of(one), one.name, one) for one in objects]


def gone(*objects: Object) -> list[Changed]:
    return [Changed(kind_of(one), one.name, None) for one in objects]


class World:
    """A planner with its Snapshot and a kernel that always agrees."""

    def __init__(self, *objects: Object, settings: Settings = SETTINGS) -> None:
        self.planner = Planner(settings)
        self.snapshot: Snapshot = EMPTY
        self.installed = Installed({}, set())
        self.host: frozenset[IP] = frozenset()
        self.apply(put(*objects))

    def apply(self, events: Iterable[Changed], now_s: float = 0.0) -> Change:
        """What the kernel is asked for after the events."""
        self.snapshot, touched = apply_events(self.snapshot, events)
        self.planner.update(self.snapshot, touched, Moment(self.installed.elements, self.host, now_s))
        change = self.planner.desired.pending(self.installed.elements)
        apply_change(self.installed, change)
        self.planner.desired.confirm()
        return change


def plan_anew(snapshot: Snapshot, held: Held) -> Planner:
    planner = Planner(SETTINGS)
    planner.update(snapshot, NOTHING, Moment(held, frozenset(), 0.0))
    return planner


def without_order(elements: Mapping[SetId, Mapping[bytes, bytes]]) -> dict[SetId, list[tuple[bytes, bytes]]]:
    """The elements, those of an endpoints map without their indexes."""
    return {
        set_id: sorted(
            (key[:-4], data) if LAYOUTS[set_id.name].data is Data.ENDPOINT else (key, data)
            for key, data in part.items()
        )
        for set_id, part in elements.items()
        if part
    }


@given(st.lists(st.lists(small_changes(), min_size=1, max_size=4), max_size=5))
@settings(max_examples=60)
def test_after_any_events_the_elements_are_those_planned_anew(batches: list[list[Changed]]) -> None:
    world = World()
    for batch in batches:
        world.apply(batch)
    assume(world.planner.next_hold_s() is None)  # a rule that is held for a while has a memory, which none anew has

    anew = plan_anew(world.snapshot, {})

    assert without_order(world.installed.elements) == without_order(anew.desired.elements)
    assert world.planner.desired.labels == anew.desired.labels
    assert world.planner.wanted_pods == anew.wanted_pods
    for kept, fresh in ((world.planner.tiers, anew.tiers), (world.planner.no_local, anew.no_local)):
        assert +kept.sums == +fresh.sums


@given(st.lists(small_changes(), max_size=10))
@settings(max_examples=40)
def test_a_planner_that_adopts_what_another_wrote_changes_nothing(events: list[Changed]) -> None:
    world = World()
    for event in events:
        world.apply([event])

    held = world.installed.elements
    planner = plan_anew(world.snapshot, held)
    planner.desired.doubt(held)

    assert planner.desired.pending(held) == Change({})


def keys_of(change: Change) -> set[str]:
    """What a change speaks of, without the indexes and data."""
    lines = [show_elements({i: part.delete}) | show_elements({i: part.add}) for i, part in change.sets.items()]
    return {line.partition(" ->")[0] for line in set[str]().union(*lines)}


A, B = slice_endpoint("10.244.0.1", node=NODE), slice_endpoint("10.244.0.2", node=NodeName("n2"))
WEB = service()
OTHER = service("default/other", cluster_ips=(IP("10.96.0.11"),))


def test_only_what_was_touched_is_written() -> None:
    world = World(WEB, OTHER, a_slice([A, B]))

    change = world.apply(put(a_slice([B])))

    assert keys_of(change) == {
        "service_ports: 10.96.0.10 TCP 80",
        "endpoints: 10.96.0.10 TCP 80 #0",
        "endpoints: 10.96.0.10 TCP 80 #1",
        "hairpin: 10.244.0.1 10.244.0.1",
    }


def test_slices_that_come_before_their_service_count_once_it_is_there() -> None:
    world = World(a_slice([B]))
    assert show_elements(world.installed.elements) == set()

    world.apply(put(WEB))

    assert "endpoints: 10.96.0.10 TCP 80 #0 -> 10.244.0.2:8080" in show_elements(world.installed.elements)


def test_a_service_that_goes_leaves_nothing_and_one_it_stood_in_the_way_of_is_served() -> None:
    shared = IP("198.51.100.7")
    first = service(external_ips=(shared,), created="2024")
    second = service("default/b", cluster_ips=(IP("10.96.0.11"),), external_ips=(shared,), created="2025")
    piece = a_slice([B], "default/b-1", service="default/b")
    world = World(first, second, piece)
    assert "no_endpoint_ports: 198.51.100.7 TCP 80 -> goto refuse" in show_elements(world.installed.elements)

    world.apply(gone(first))

    shown = show_elements(world.installed.elements)
    assert "service_ports: 198.51.100.7 TCP 80 -> goto pick_1" in shown
    assert not [line for line in shown if "10.96.0.10 " in line or "198.51.100.7 TCP 80 -> goto refuse" in line]


def test_two_services_exchange_their_external_ips_in_one_batch() -> None:
    x, y = IP("198.51.100.7"), IP("198.51.100.8")

    def pair(of_web: IP, of_other: IP) -> tuple[Service, Service]:
        return service(external_ips=(of_web,)), service(
            "default/b", cluster_ips=(IP("10.96.0.11"),), external_ips=(of_other,)
        )

    world = World(*pair(x, y), a_slice([A]), a_slice([B], "default/b-1", service="default/b"))
    world.apply(put(*pair(y, x)))

    shown = show_elements(world.installed.elements)
    assert "endpoints: 198.51.100.8 TCP 80 #0 -> 10.244.0.1:8080" in shown
    assert "endpoints: 198.51.100.7 TCP 80 #0 -> 10.244.0.2:8080" in shown


def node(**fields: object) -> Node:
    return Node(NODE, addresses=(IP("192.0.2.1"),), **fields)  # type: ignore[arg-type]  # a zone, or ready


def test_a_new_zone_label_of_our_node_has_everything_planned_again() -> None:
    near = slice_endpoint("10.244.0.1", for_zones=frozenset({Zone("za")}))
    far = slice_endpoint("10.244.0.2", for_zones=frozenset({Zone("zb")}))
    world = World(WEB, a_slice([near, far]), node())
    assert world.planner.tiers.sums[Tier.CLUSTER] == 2

    world.apply(put(node(zone=Zone("za"))))

    assert world.planner.tiers.sums == {Tier.SAME_ZONE: 1, Tier.CLUSTER: 0}


def test_addresses_and_ranges_of_the_node_follow_what_they_come_from() -> None:
    world = World(settings=Settings(NODE))
    world.host = frozenset({IP("203.0.113.1")})
    world.apply(put(ServiceCIDR("kubernetes", (CIDR("10.96.0.0/16"),))))
    assert {line for line in show_elements(world.installed.elements, of_the_node=True) if "::" not in line} == {
        "node_addresses: 203.0.113.1",
        "external_addresses: 203.0.113.1",
        "binding_addresses: 203.0.113.1",
        "service_cidrs: 10.96.0.0-10.96.255.255",
        "cluster_ip_sources: 0.0.0.0-255.255.255.255",
    }

    change = world.apply([*put(node()), Changed(Kind.SERVICE_CIDR, "kubernetes", None)])

    assert len(change.sets) == 4
    shown = show_elements(world.installed.elements, of_the_node=True)
    assert "node_addresses: 192.0.2.1" in shown
    assert not [line for line in shown if line.startswith("service_cidrs")]


AGENT = service(traffic_distribution=CLOSE)
PODS = [slice_endpoint(f"10.244.0.{n}", node=NodeName(f"n{n}"), pod=f"default/agent-aaaa{n}") for n in (1, 2, 3, 4)]
FOUR = daemon_set(desired=4)


def test_the_owner_of_our_own_pod_is_asked_for_and_then_traffic_stays_here() -> None:
    world = World(AGENT, a_slice(PODS), FOUR)
    assert world.planner.wanted_pods == {"default/agent-aaaa1"}
    assert world.planner.tiers.sums[Tier.SAME_NODE] == 0

    world.apply(put(pod("default/agent-aaaa1")))

    assert world.planner.wanted_pods == frozenset()
    assert +world.planner.tiers.sums == {Tier.SAME_NODE: 1}


def test_a_daemon_set_that_comes_and_goes_takes_its_services_along() -> None:
    world = World(AGENT, a_slice(PODS), pod("default/agent-aaaa1"))
    assert +world.planner.tiers.sums == {Tier.CLUSTER: 4}

    world.apply(put(FOUR))
    assert +world.planner.tiers.sums == {Tier.SAME_NODE: 1}

    world.apply(gone(FOUR))
    assert +world.planner.tiers.sums == {Tier.CLUSTER: 4}


def test_without_a_status_a_daemon_set_counts_against_the_ready_nodes_of_the_folder() -> None:
    others = [Node(NodeName(f"n{number}")) for number in range(2, 9)]
    world = World(AGENT, a_slice(PODS), daemon_set(desired=None), pod("default/agent-aaaa1"), node(), *others)
    assert +world.planner.tiers.sums == {Tier.CLUSTER: 4}

    world.apply(gone(*others[3:]))

    assert +world.planner.tiers.sums == {Tier.SAME_NODE: 1}


def test_too_few_nodes_are_put_up_with_for_a_while_and_no_longer() -> None:
    world = World(AGENT, a_slice(PODS), FOUR, pod("default/agent-aaaa1"))
    assert world.planner.next_hold_s() is None

    world.apply(put(a_slice(PODS[:2])), now_s=100.0)
    assert world.planner.next_hold_s() == 100.0 + HOLD_S
    assert +world.planner.tiers.sums == {Tier.SAME_NODE: 1}

    world.apply([], now_s=100.0 + HOLD_S)

    assert world.planner.next_hold_s() is None
    assert +world.planner.tiers.sums == {Tier.CLUSTER: 2}


@pytest.mark.parametrize("before_its_end", [True, False])
def test_a_hold_ends_with_its_service(*, before_its_end: bool) -> None:
    world = World(AGENT, a_slice(PODS), FOUR, pod("default/agent-aaaa1"))
    world.apply(put(a_slice(PODS[:2])), now_s=100.0)

    world.apply(gone(AGENT), now_s=110.0 if before_its_end else 200.0)

    assert world.planner.next_hold_s() is None
    assert +world.planner.tiers.sums == {}


def test_offline_plans_are_those_of_a_planner_in_the_order_of_names() -> None:
    world = World(
        WEB, OTHER, a_slice([A], "default/web-1"), service("default/a", internal_traffic_policy=TrafficPolicy.LOCAL)
    )

    plans = plan_all(world.snapshot, SETTINGS)

    assert [plan.service.name for plan in plans] == ["default/a", "default/other", "default/web"]
    assert list(plans) == [world.planner.plan(plan.service.name, 0.0) for plan in plans]
