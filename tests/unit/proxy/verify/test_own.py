"""Our own tables: what was planned is found to be right, and whatever isn't as planned is found and named."""

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from endpointslice.daemonsets import Mode
from endpointslice.snapshot import Changed
from endpointslice.types import IP, Family, Protocol, TrafficDistribution, TrafficPolicy
from proxy.kernel.ruleset import SetId, SetName
from proxy.planner.keys import pack_index, pack_node_port, pack_target, pack_vip
from proxy.verify.checks import Check, check_own
from proxy.verify.compare import Difference
from proxy.verify.own import Elements
from proxy.verify.types import Key
from tests.builders import HTTP_NODE_PORT, a_slice, daemon_set, pod, service, slice_endpoint
from tests.small_worlds import NODE, small_changes
from tests.verified import SETTINGS, Planned, plan_events, plan_objects

VIP = pack_vip(IP("10.96.0.10"), Protocol.TCP, 80)
WEB = Key(Family.IPV4, IP("10.96.0.10"), Protocol.TCP, 80)
V4 = Family.IPV4

WORLD = plan_objects(
    service(
        ports=(HTTP_NODE_PORT,),
        type="LoadBalancer",
        load_balancer_ips=(IP("203.0.113.1"),),
        source_ranges=("10.0.0.0/8",),
        external_traffic_policy=TrafficPolicy.LOCAL,
        affinity_timeout_s=60,
    ),
    a_slice([slice_endpoint("10.244.0.1", node=NODE), slice_endpoint("10.244.1.1", node="n2")]),
    service("default/empty", cluster_ips=(IP("10.96.0.11"),)),
)


def copy(elements: Elements) -> dict[SetId, dict[bytes, bytes]]:
    return {set_id: dict(part) for set_id, part in elements.items()}


def differences(check: Check) -> dict[Key, set[Difference]]:
    found: dict[Key, set[Difference]] = {}
    for row in check.rows:
        if row.wrong:
            found.setdefault(row.key, set()).update(row.differences)
    return found


def is_clean(check: Check) -> bool:
    return not any(row.differences for row in check.rows) and not check.remarks


@given(st.lists(small_changes(), max_size=12))
def test_what_was_planned_is_found_to_be_right(events: list[Changed]) -> None:
    planned = plan_events(events)

    check = planned.check_own(planned.elements)

    assert is_clean(check)
    assert {row.key for row in check.rows} == planned.wanted.frontends.keys()


@given(st.lists(small_changes(), min_size=4, max_size=12), st.data())
def test_an_element_that_is_missing_or_other_is_found_and_named(events: list[Changed], data: st.DataObject) -> None:
    planned = plan_events(events)
    places = sorted((set_id, key) for set_id, part in planned.elements.items() for key in part)
    assume(places)
    set_id, key = data.draw(st.sampled_from(places))
    installed = copy(planned.elements)
    value = installed[set_id].pop(key)
    if value and data.draw(st.booleans()) and set_id.name is not SetName.AFFINITIES:
        installed[set_id][key] = value[:-1] + bytes([value[-1] ^ 1])

    check = planned.check_own(installed)

    wrong = differences(check)
    unexplained = [remark for remark in check.remarks if not remark.meant]
    assert wrong or unexplained
    assert len({frontend.family for frontend in wrong} - {set_id.family}) == 0


@given(st.lists(small_changes(), max_size=8), st.lists(small_changes(), max_size=3))
def test_the_elements_of_another_state_differ_exactly_if_the_plans_do(
    before: list[Changed], after: list[Changed]
) -> None:
    old, new = plan_events(before), plan_events([*before, *after])

    check = new.check_own(old.elements)

    assert is_clean(check) == (without_empty(old) == without_empty(new))


def without_empty(planned: Planned) -> Elements:
    return {set_id: part for set_id, part in planned.elements.items() if part}


NODE_PORT = Key(V4, IP(""), Protocol.TCP, 30080)
BALANCER = Key(V4, IP("203.0.113.1"), Protocol.TCP, 80)
BALANCER_KEY = pack_vip(IP("203.0.113.1"), Protocol.TCP, 80)
EMPTY = Key(V4, IP("10.96.0.11"), Protocol.TCP, 80)
EMPTY_KEY = pack_vip(IP("10.96.0.11"), Protocol.TCP, 80)
OTHER = Key(V4, IP("10.96.0.99"), Protocol.TCP, 80)
OTHER_KEY = pack_vip(IP("10.96.0.99"), Protocol.TCP, 80)


@pytest.mark.parametrize(
    ("name", "key", "value", "frontend", "difference"),
    [
        pytest.param("service_ports", VIP, None, WEB, Difference.MISSING, id="a ClusterIP that leads nowhere"),
        pytest.param("service_ports", VIP, b"goto pick_1", WEB, Difference.ENDPOINTS, id="too few endpoints drawn"),
        pytest.param(
            "endpoints",
            VIP + pack_index(0),
            pack_target(IP("10.9.9.9"), 80),
            WEB,
            Difference.ENDPOINTS,
            id="another endpoint",
        ),
        pytest.param("endpoints", VIP + pack_index(1), None, WEB, Difference.UNREADABLE, id="a gap in the list"),
        pytest.param("endpoints", VIP + pack_index(9), b"-" * 8, WEB, Difference.ELEMENTS, id="one behind the list"),
        pytest.param("no_endpoint_ports", EMPTY_KEY, b"drop", EMPTY, Difference.VERDICT, id="dropped, not refused"),
        pytest.param("no_endpoint_ports", EMPTY_KEY, None, EMPTY, Difference.MISSING, id="neither dropped nor refused"),
        pytest.param("no_endpoint_ports", OTHER_KEY, b"drop", OTHER, Difference.EXTRA, id="what no Service has"),
        pytest.param("affinity_ports", VIP, None, WEB, Difference.AFFINITY, id="no affinity"),
        pytest.param("record_ports", VIP, None, WEB, Difference.ELEMENTS, id="bindings that aren't recorded"),
        pytest.param("firewalled_ports", BALANCER_KEY, None, BALANCER, Difference.RANGES, id="open to all"),
        pytest.param(
            "masquerade_ports", BALANCER_KEY, b"", BALANCER, Difference.SOURCE, id="masqueraded, though Local"
        ),
        pytest.param(
            "local_source_node_ports",
            pack_node_port(Protocol.TCP, 30080),
            None,
            NODE_PORT,
            Difference.ENDPOINTS,
            id="no short circuit",
        ),
    ],
)
def test_each_kind_of_difference(
    name: str, key: bytes, value: bytes | None, frontend: Key, difference: Difference
) -> None:
    installed = copy(WORLD.elements)
    part = installed.setdefault(SetId(V4, SetName(name)), {})
    if value is None:
        del part[key]
    else:
        part[key] = value

    check = WORLD.check_own(installed)

    assert difference in differences(check)[frontend]
    assert set(differences(check)) == {frontend}


def test_elements_of_the_node_are_told_in_words() -> None:
    installed = copy(WORLD.elements)
    installed[SetId(V4, SetName.HAIRPIN)].clear()
    del installed[SetId(V4, SetName.CLUSTER_IPS)][EMPTY_KEY[:4]]
    installed[SetId(V4, SetName.NODE_ADDRESSES)] = {b"\x0a\0\0\1": b""}
    installed[SetId(V4, SetName.MASQUERADE_PORTS)] = {OTHER_KEY: b""}

    told = [remark.what for remark in WORLD.check_own(installed).remarks]

    assert told == [
        "10.96.0.11 is not among the ClusterIPs: its other ports are not refused",
        "IPv4 NodePorts answer at 10.0.0.1, not at no address",
        "endpoints that reach themselves through their Service (IPv4 set hairpin): 1 missing",
        "elements (IPv4 set masquerade_ports): 1 extra",
    ]


def test_a_same_node_rule_that_a_running_closeby_still_holds_is_meant() -> None:
    """The plan knows no clock: the DaemonSet lost nodes less than 30 s ago (endpointslice/daemonsets.py)."""
    objects = (
        service(traffic_distribution=TrafficDistribution.PREFER_CLOSE),
        a_slice(
            [
                slice_endpoint("10.244.0.1", node=NODE, pod="default/agent-aaaaa"),
                slice_endpoint("10.244.1.1", node="n2", pod="default/agent-bbbbb"),
            ]
        ),
        daemon_set(desired=9),
        pod("default/agent-aaaaa"),
    )
    held = plan_objects(*objects, settings=msgspec.structs.replace(SETTINGS, same_node=Mode.ALWAYS))

    check = plan_objects(*objects).check_own(held.elements)

    (row,) = check.rows
    assert row.differences == (Difference.ENDPOINTS,)
    assert "puts up with for 30 seconds" in row.meant
    assert not any(remark.what for remark in check.remarks if not remark.meant)


def test_a_table_that_is_not_as_we_make_it_is_told_and_its_elements_are_left_alone() -> None:
    check = check_own({Family.IPV4: None, Family.IPV6: {}}, {}, WORLD.wanted, WORLD.settings)

    assert check.rows == ()
    assert "table ip closeby isn't as this version makes it" in check.remarks[0].what
