"""kube-proxy's table: as it would write it nothing differs but what is meant to, and whatever is doctored is named."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.snapshot import Changed
from endpointslice.types import CIDR, IP, Family, Node, Protocol, TrafficDistribution, TrafficPolicy, Zone
from proxy.planner.keys import pack_node_port, pack_vip
from proxy.verify.checks import Check
from proxy.verify.compare import CONTESTED, Difference
from proxy.verify.expressions import Do, Load, Match, Rule
from proxy.verify.types import Key
from tests.builders import HTTP_NODE_PORT, a_slice, daemon_set, pod, service, slice_endpoint
from tests.kube_proxy_table import KubeProxyTable
from tests.small_worlds import NODE, small_changes
from tests.verified import Planned, plan_events, plan_objects, tables_of

WEB = Key(Family.IPV4, IP("10.96.0.10"), Protocol.TCP, 80)
WEB_KEY = pack_vip(WEB.ip, Protocol.TCP, 80)
BALANCER = Key(Family.IPV4, IP("203.0.113.1"), Protocol.TCP, 80)
BALANCER_KEY = pack_vip(BALANCER.ip, Protocol.TCP, 80)
NODE_PORT = Key(Family.IPV4, IP(""), Protocol.TCP, 30080)
NODE_PORT_KEY = pack_node_port(Protocol.TCP, 30080)
EMPTY = Key(Family.IPV4, IP("10.96.0.11"), Protocol.TCP, 80)
EMPTY_KEY = pack_vip(EMPTY.ip, Protocol.TCP, 80)

WORLD = plan_objects(
    Node(NODE, addresses=(IP("192.0.2.1"),)),
    service(
        ports=(HTTP_NODE_PORT,),
        type="LoadBalancer",
        load_balancer_ips=(BALANCER.ip,),
        source_ranges=(CIDR("10.0.0.0/8"),),
        external_traffic_policy=TrafficPolicy.LOCAL,
    ),
    a_slice([slice_endpoint("10.244.0.1", node=NODE), slice_endpoint("10.244.1.1", node="n2")]),
    service("default/empty", cluster_ips=(EMPTY.ip,)),
)


def ipv4(planned: Planned = WORLD) -> KubeProxyTable:
    return tables_of(planned.wanted)[0]


def wrong(check: Check) -> dict[Key, set[Difference]]:
    found: dict[Key, set[Difference]] = {}
    for row in check.rows:
        if row.wrong:
            found.setdefault(row.key, set()).update(row.differences)
    return found


@given(st.lists(small_changes(), max_size=12))
def test_what_kube_proxy_would_write_differs_only_as_meant(events: list[Changed]) -> None:
    planned = plan_events(events)

    check = planned.check_kube_proxy(tables_of(planned.wanted))

    assert wrong(check) == {}
    assert check.remarks == ()
    assert {row.key for row in check.rows if row.meant} == {
        key for key, expected in planned.wanted.frontends.items() if expected.by_kube_proxy
    }


Doctor = Callable[[KubeProxyTable], object]


def lose_an_endpoint(table: KubeProxyTable) -> None:
    table.elements["map-local-10.96.0.10/TCP/80"].popitem()
    table.rules["local-10.96.0.10/TCP/80"] = [Rule(Do.DNAT, map="map-local-10.96.0.10/TCP/80", draws=1)]


def open_the_firewall(table: KubeProxyTable) -> None:
    del table.elements["firewall-ips"][BALANCER_KEY]


def narrow_the_firewall(table: KubeProxyTable) -> None:
    only = Match(Load.SOURCE, b"\x0a\x01", negated=True)
    table.rules["firewall-203.0.113.1/TCP/80"] = [Rule(Do.DROP, (only,))]


def forget_the_short_circuit(table: KubeProxyTable) -> None:
    del table.rules["external-203.0.113.1/TCP/80"][:-1]


def bind(table: KubeProxyTable) -> None:
    chain = "local-10.96.0.10/TCP/80"
    table.timeouts_s["bindings"] = 60
    table.rules["bound"] = [Rule(Do.DNAT, endpoint=b"\x0a\xf4\0\1\x1f\x90\0\0")]
    table.rules[chain].insert(0, Rule(Do.GOTO, (Match(Load.SOURCE, set="bindings"),), target="bound"))


def bind_to_a_stranger(table: KubeProxyTable) -> None:
    bind(table)
    table.rules["bound"] = [Rule(Do.DNAT, endpoint=b"\x0a\xf4\0\x09\x1f\x90\0\0")]


def mark(table: KubeProxyTable) -> None:
    table.rules["external-203.0.113.1/TCP/80"].insert(0, Rule(Do.MARK))


def circle(table: KubeProxyTable) -> None:
    table.rules["local-10.96.0.10/TCP/80"] = [Rule(Do.GOTO, target="external-10.96.0.10/TCP/80")]


def draw_too_far(table: KubeProxyTable) -> None:
    table.rules["local-10.96.0.10/TCP/80"] = [Rule(Do.DNAT, map="map-local-10.96.0.10/TCP/80", draws=3)]


@pytest.mark.parametrize(
    ("doctor", "frontend", "difference"),
    [
        pytest.param(lambda t: t.elements["service-ips"].pop(WEB_KEY), WEB, "missing", id="no way for a ClusterIP"),
        pytest.param(
            lambda t: t.elements["service-ips"].update({EMPTY_KEY: b"goto local-10.96.0.10/TCP/80"}),
            EMPTY,
            "other-verdict",
            id="somebody answers where nobody should",
        ),
        pytest.param(
            lambda t: t.elements["no-endpoint-services"].update({EMPTY_KEY: b"drop"}),
            EMPTY,
            "other-verdict",
            id="dropped, not refused",
        ),
        pytest.param(
            lambda t: t.elements["service-nodeports"].pop(NODE_PORT_KEY),
            NODE_PORT,
            "missing",
            id="no way for a NodePort",
        ),
        pytest.param(
            lambda t: t.elements["service-nodeports"].update(
                {pack_node_port(Protocol.UDP, 30080): b"goto local-10.96.0.10/TCP/80"}
            ),
            Key(Family.IPV4, IP(""), Protocol.UDP, 30080),
            "extra",
            id="a NodePort that no Service has",
        ),
        pytest.param(lose_an_endpoint, WEB, "other-endpoints", id="an endpoint that is never drawn"),
        pytest.param(open_the_firewall, BALANCER, "other-source-ranges", id="no source ranges"),
        pytest.param(narrow_the_firewall, BALANCER, "other-source-ranges", id="other source ranges"),
        pytest.param(forget_the_short_circuit, BALANCER, "other-endpoints", id="pods of this node fare as others"),
        pytest.param(bind, WEB, "other-affinity", id="bindings where there is no affinity"),
        pytest.param(bind_to_a_stranger, WEB, "not-understood", id="a binding to an endpoint that isn't in the list"),
        pytest.param(mark, BALANCER, "other-source", id="masqueraded, though Local"),
        pytest.param(circle, WEB, "not-understood", id="chains in a circle"),
        pytest.param(draw_too_far, WEB, "not-understood", id="a draw that may find nothing"),
        pytest.param(
            lambda t: t.rules["local-10.96.0.10/TCP/80"].insert(0, Rule(Do.UNKNOWN)),
            WEB,
            "not-understood",
            id="a rule of unknown kind",
        ),
        pytest.param(
            lambda t: t.rules["local-10.96.0.10/TCP/80"].insert(0, Rule(Do.DROP, (Match(Load.OTHER),))),
            WEB,
            "not-understood",
            id="a condition of unknown kind",
        ),
    ],
)
def test_what_was_doctored_is_named(doctor: Doctor, frontend: Key, difference: str) -> None:
    table = ipv4()
    assert wrong(WORLD.check_kube_proxy([table])) == {}
    doctor(table)

    check = WORLD.check_kube_proxy([table])

    assert Difference(difference) in wrong(check)[frontend]
    assert set(wrong(check)) == {frontend}


@pytest.mark.parametrize(
    ("doctor", "told"),
    [
        pytest.param(
            lambda t: t.rules["services"].pop(0), "doesn't look into service-ips at prerouting", id="a rule is gone"
        ),
        pytest.param(lambda t: t.hooks.pop("output"), "service-ips at output", id="a base chain is gone"),
        pytest.param(lambda t: t.elements.pop("firewall-ips"), "has no map firewall-ips", id="another version's maps"),
        pytest.param(
            lambda t: t.elements["cluster-ips"].clear(), "10.96.0.10 is not among the ClusterIPs", id="no ClusterIPs"
        ),
        pytest.param(
            lambda t: t.elements["nodeport-ips"].clear(),
            "NodePorts answer at no address, not at 192.0.2.1",
            id="no node",
        ),
    ],
)
def test_what_is_wrong_with_the_table_as_a_whole_is_told(doctor: Doctor, told: str) -> None:
    table = ipv4()
    doctor(table)

    remarks = WORLD.check_kube_proxy([table]).remarks

    assert any(told in remark.what and not remark.meant for remark in remarks)


CLOSE = service(traffic_distribution=TrafficDistribution.PREFER_CLOSE)
BOTH_ZONES = a_slice(
    [
        slice_endpoint("10.244.0.1", node=NODE, zone=Zone("za"), pod="default/agent-aaaaa"),
        slice_endpoint("10.244.1.1", node="n2", zone=Zone("zb"), pod="default/agent-bbbbb"),
    ]
)
HERE = Node(NODE, zone=Zone("za"))


@pytest.mark.parametrize(
    ("planned", "reason"),
    [
        pytest.param(plan_objects(HERE, CLOSE, BOTH_ZONES), "the endpoints' own zones", id="slices without hints"),
        pytest.param(
            plan_objects(
                HERE, CLOSE, BOTH_ZONES, daemon_set(desired=2), pod("default/agent-aaaaa"), pod("default/agent-bbbbb")
            ),
            "this node's pod of the DaemonSet",
            id="the DaemonSet rule",
        ),
    ],
)
def test_a_difference_that_is_meant_is_told_with_its_reason(planned: Planned, reason: str) -> None:
    check = planned.check_kube_proxy([ipv4(planned)])

    (row,) = check.rows
    assert row.differences == (Difference.ENDPOINTS,)
    assert reason in row.meant
    assert not row.wrong


def test_a_choice_that_neither_would_make_is_not_meant() -> None:
    planned = plan_objects(HERE, CLOSE, BOTH_ZONES)
    table = ipv4(planned)
    table.elements["map-local-10.96.0.10/TCP/80"] = {bytes(4): b"\x0a\xf4\1\1\x1f\x90\0\0"}
    table.rules["local-10.96.0.10/TCP/80"] = [Rule(Do.DNAT, map="map-local-10.96.0.10/TCP/80", draws=1)]

    assert wrong(planned.check_kube_proxy([table])) == {WEB: {Difference.ENDPOINTS}}


def test_where_two_services_claim_one_address_any_answer_is_meant() -> None:
    rival = service("default/rival", cluster_ips=(IP("10.96.0.12"),), external_ips=(WEB.ip,))
    planned = plan_objects(service(), rival, a_slice([slice_endpoint()]))
    table = ipv4(planned)
    del table.elements["service-ips"][WEB_KEY]
    table.elements["no-endpoint-services"][WEB_KEY] = b"goto reject-chain"

    rows = planned.check_kube_proxy([table]).rows

    assert {row.key: row.meant for row in rows if row.differences} == {WEB: CONTESTED}


def test_node_ports_at_every_address_are_meant_where_no_network_of_the_family_is_given() -> None:
    settings = WORLD.settings.__class__(NODE, node_port_addresses=("2001:db8::/32",))
    planned = plan_objects(HERE, service(ports=(HTTP_NODE_PORT,), type="NodePort"), settings=settings)
    table = ipv4(planned)
    table.rules["services"][1] = Rule(Do.MAP, (Match(Load.DESTINATION_IS_LOCAL, b"\0\0\0\2"),), map="service-nodeports")

    (remark,) = planned.check_kube_proxy([table]).remarks

    assert "no network of this family" in remark.meant
