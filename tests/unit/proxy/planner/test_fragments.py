"""The elements of a Service in each situation: all of them, so that none comes unasked."""

import pytest

from endpointslice.daemonsets import SAME_NODE_OFF
from endpointslice.topology import Place, Tier
from endpointslice.types import (
    CIDR,
    IP,
    Family,
    NodeName,
    Protocol,
    Service,
    ServicePort,
    SliceEndpoint,
    TrafficPolicy,
)
from proxy.kernel.ruleset import SetId, SetName
from proxy.planner.fragments import Label, render_service
from proxy.planner.frontends import Claims, service_claims
from proxy.planner.keys import pack_index, pack_target, pack_vip
from proxy.planner.plan import Rules, ServiceState, plan_service
from tests.builders import HTTP_NODE_PORT, a_slice, service, slice_endpoint
from tests.elements_text import OF_AFFINITY, OF_THE_NODE, show_elements
from tests.rendered import HERE, render

THERE = NodeName("n2")
LOCAL = TrafficPolicy.LOCAL
L_R = slice_endpoint("10.244.0.1", "R", node=HERE)
L_X = slice_endpoint("10.244.0.2", "X", node=HERE)
L_T = slice_endpoint("10.244.0.4", "T", node=HERE)
R_R = slice_endpoint("10.244.1.1", "R", node=THERE)
NOWHERE = slice_endpoint("10.244.2.1", "R")
NODE_PORT = service(type="NodePort", ports=(HTTP_NODE_PORT,))
EXTERNAL = IP("198.51.100.7")


ROWS = [
    pytest.param(
        service(),
        [L_R, R_R],
        """
        cluster_ips: 10.96.0.10
        service_ports: 10.96.0.10 TCP 80 -> goto pick_2
        endpoints: 10.96.0.10 TCP 80 #0 -> 10.244.0.1:8080
        endpoints: 10.96.0.10 TCP 80 #1 -> 10.244.1.1:8080
        hairpin: 10.244.0.1 10.244.0.1
        """,
        id="t2 a ClusterIP with endpoints here and elsewhere",
    ),
    pytest.param(
        service(),
        [],
        """
        cluster_ips: 10.96.0.10
        no_endpoint_ports: 10.96.0.10 TCP 80 -> goto refuse
        """,
        id="t1 without endpoints it is refused",
    ),
    pytest.param(
        service(),
        [NOWHERE],
        """
        cluster_ips: 10.96.0.10
        service_ports: 10.96.0.10 TCP 80 -> goto pick_1
        endpoints: 10.96.0.10 TCP 80 #0 -> 10.244.2.1:8080
        hairpin: 10.244.2.1 10.244.2.1
        """,
        id="an endpoint on no known node may be here, so it is in hairpin",
    ),
    pytest.param(
        service(internal_traffic_policy=LOCAL),
        [R_R],
        """
        cluster_ips: 10.96.0.10
        no_endpoint_ports: 10.96.0.10 TCP 80 -> drop
        """,
        id="t9 internal Local with endpoints elsewhere only is dropped",
    ),
    pytest.param(
        service(internal_traffic_policy=LOCAL),
        [L_X],
        """
        cluster_ips: 10.96.0.10
        no_endpoint_ports: 10.96.0.10 TCP 80 -> goto refuse
        """,
        id="t12 internal Local with an unready endpoint is refused",
    ),
    pytest.param(
        NODE_PORT,
        [L_R, R_R],
        """
        cluster_ips: 10.96.0.10
        service_ports: 10.96.0.10 TCP 80 -> goto pick_2
        endpoints: 10.96.0.10 TCP 80 #0 -> 10.244.0.1:8080
        endpoints: 10.96.0.10 TCP 80 #1 -> 10.244.1.1:8080
        node_ports: TCP 30080 -> goto node_port_pick_2
        node_port_endpoints: TCP 30080 #0 -> 10.244.0.1:8080
        node_port_endpoints: TCP 30080 #1 -> 10.244.1.1:8080
        masquerade_node_ports: TCP 30080
        hairpin: 10.244.0.1 10.244.0.1
        """,
        id="a NodePort under external Cluster is masqueraded",
    ),
    pytest.param(
        service(load_balancer_ips=(EXTERNAL,), source_ranges=(CIDR("10.0.0.0/8"),)),
        [],
        """
        cluster_ips: 10.96.0.10
        no_endpoint_ports: 10.96.0.10 TCP 80 -> goto refuse
        no_endpoint_ports: 198.51.100.7 TCP 80 -> goto refuse
        firewalled_ports: 198.51.100.7 TCP 80
        allowed_sources: 198.51.100.7 TCP 80 10.0.0.0 10.255.255.255
        """,
        id="source ranges come before what endpoints there are",
    ),
    pytest.param(
        NODE_PORT,
        [L_X],
        """
        cluster_ips: 10.96.0.10
        no_endpoint_ports: 10.96.0.10 TCP 80 -> goto refuse
        no_endpoint_node_ports: TCP 30080 -> goto refuse
        """,
        id="t7 a NodePort without usable endpoints is refused",
    ),
    pytest.param(
        service(type="NodePort", ports=(HTTP_NODE_PORT,), external_traffic_policy=LOCAL),
        [L_R, R_R],
        """
        cluster_ips: 10.96.0.10
        service_ports: 10.96.0.10 TCP 80 -> goto pick_2
        endpoints: 10.96.0.10 TCP 80 #0 -> 10.244.0.1:8080
        endpoints: 10.96.0.10 TCP 80 #1 -> 10.244.1.1:8080
        node_ports: TCP 30080 -> goto node_port_pick_1
        node_port_endpoints: TCP 30080 #0 -> 10.244.0.1:8080
        by_source_node_ports: TCP 30080
        local_source_node_ports: TCP 30080 -> goto local_source_node_port_pick_2
        local_source_node_port_endpoints: TCP 30080 #0 -> 10.244.0.1:8080
        local_source_node_port_endpoints: TCP 30080 #1 -> 10.244.1.1:8080
        host_masquerade_node_ports: TCP 30080
        hairpin: 10.244.0.1 10.244.0.1
        """,
        id="t14 external Local keeps outside traffic here and lets our own go anywhere",
    ),
    pytest.param(
        service(type="NodePort", ports=(HTTP_NODE_PORT,), external_traffic_policy=LOCAL),
        [R_R],
        """
        cluster_ips: 10.96.0.10
        service_ports: 10.96.0.10 TCP 80 -> goto pick_1
        endpoints: 10.96.0.10 TCP 80 #0 -> 10.244.1.1:8080
        no_endpoint_node_ports: TCP 30080 -> drop
        by_source_node_ports: TCP 30080
        local_source_node_ports: TCP 30080 -> goto local_source_node_port_pick_1
        local_source_node_port_endpoints: TCP 30080 #0 -> 10.244.1.1:8080
        host_masquerade_node_ports: TCP 30080
        """,
        id="t15 external Local with endpoints elsewhere only drops what comes from outside",
    ),
    pytest.param(
        service(type="NodePort", ports=(HTTP_NODE_PORT,), internal_traffic_policy=LOCAL),
        [R_R],
        """
        cluster_ips: 10.96.0.10
        no_endpoint_ports: 10.96.0.10 TCP 80 -> drop
        node_ports: TCP 30080 -> goto node_port_pick_1
        node_port_endpoints: TCP 30080 #0 -> 10.244.1.1:8080
        masquerade_node_ports: TCP 30080
        """,
        id="t22 internal Local leaves the NodePort alone",
    ),
    pytest.param(
        service(external_traffic_policy=LOCAL),
        [R_R],
        """
        cluster_ips: 10.96.0.10
        service_ports: 10.96.0.10 TCP 80 -> goto pick_1
        endpoints: 10.96.0.10 TCP 80 #0 -> 10.244.1.1:8080
        """,
        id="t23 external Local means nothing to a plain ClusterIP",
    ),
    pytest.param(
        service(external_ips=(EXTERNAL,), external_traffic_policy=LOCAL),
        [R_R],
        """
        cluster_ips: 10.96.0.10
        service_ports: 10.96.0.10 TCP 80 -> goto pick_1
        endpoints: 10.96.0.10 TCP 80 #0 -> 10.244.1.1:8080
        no_endpoint_ports: 198.51.100.7 TCP 80 -> drop
        by_source_ports: 198.51.100.7 TCP 80
        local_source_ports: 198.51.100.7 TCP 80 -> goto local_source_pick_1
        local_source_endpoints: 198.51.100.7 TCP 80 #0 -> 10.244.1.1:8080
        external_addresses: 198.51.100.7
        host_masquerade_ports: 198.51.100.7 TCP 80
        """,
        id="t24 a ClusterIP with an external IP is dropped from outside",
    ),
    pytest.param(
        service(type="LoadBalancer", load_balancer_ips=(EXTERNAL,), external_traffic_policy=LOCAL),
        [L_T],
        """
        cluster_ips: 10.96.0.10
        service_ports: 10.96.0.10 TCP 80 -> goto pick_1
        endpoints: 10.96.0.10 TCP 80 #0 -> 10.244.0.4:8080
        service_ports: 198.51.100.7 TCP 80 -> goto pick_1
        endpoints: 198.51.100.7 TCP 80 #0 -> 10.244.0.4:8080
        by_source_ports: 198.51.100.7 TCP 80
        local_source_ports: 198.51.100.7 TCP 80 -> goto local_source_pick_1
        local_source_endpoints: 198.51.100.7 TCP 80 #0 -> 10.244.0.4:8080
        external_addresses: 198.51.100.7
        host_masquerade_ports: 198.51.100.7 TCP 80
        hairpin: 10.244.0.4 10.244.0.4
        """,
        id="t17 external Local uses the one that drains here",
    ),
    pytest.param(
        service(external_ips=(EXTERNAL,), ports=(ServicePort("dns", Protocol.UDP, 53),)),
        [R_R],
        """
        cluster_ips: 10.96.0.10
        service_ports: 10.96.0.10 UDP 53 -> goto pick_1
        endpoints: 10.96.0.10 UDP 53 #0 -> 10.244.1.1:8080
        service_ports: 198.51.100.7 UDP 53 -> goto pick_1
        endpoints: 198.51.100.7 UDP 53 #0 -> 10.244.1.1:8080
        external_addresses: 198.51.100.7
        masquerade_ports: 198.51.100.7 UDP 53
        """,
        id="an external IP of a UDP port under external Cluster",
    ),
    pytest.param(
        service(cluster_ips=(IP("10.96.0.10"), IP("fd00::a"))),
        [R_R],
        """
        cluster_ips: 10.96.0.10
        service_ports: 10.96.0.10 TCP 80 -> goto pick_1
        endpoints: 10.96.0.10 TCP 80 #0 -> 10.244.1.1:8080
        cluster_ips: fd00::a
        no_endpoint_ports: fd00::a TCP 80 -> goto refuse
        """,
        id="a family without endpoints is refused, the other served",
    ),
]


@pytest.mark.parametrize(("of", "endpoints", "lines"), ROWS)
def test_the_elements_of_a_service(of: Service, endpoints: list[SliceEndpoint], lines: str) -> None:
    rendered = render(of, *endpoints)

    assert show_elements(rendered.elements) == {line.strip() for line in lines.strip().splitlines()}


def test_an_ipv6_endpoint_is_in_its_own_familys_sets() -> None:
    of = service(cluster_ips=(IP("fd00::a"),))
    piece = a_slice([slice_endpoint("fd00::1", node=HERE)], family=Family.IPV6)
    claims = Claims()
    claims.replace(of.name, service_claims(of))
    rules = Rules(detects_pods=False, masquerade_all=False)
    plan = plan_service(ServiceState(of, [piece], SAME_NODE_OFF), Place(HERE, None), rules, claims)

    rendered = render_service(plan, HERE, {})

    assert {set_id.family for set_id in rendered.elements} == {Family.IPV6}
    assert show_elements(rendered.elements) == {
        "cluster_ips: fd00::a",
        "service_ports: fd00::a TCP 80 -> goto pick_1",
        "endpoints: fd00::a TCP 80 #0 -> [fd00::1]:8080",
        "hairpin: fd00::1 fd00::1",
    }


def test_an_endpoint_that_the_kernel_holds_keeps_its_index() -> None:
    key = pack_vip(IP("10.96.0.10"), Protocol.TCP, 80)
    held = {SetId(Family.IPV4, SetName.ENDPOINTS): {key + pack_index(0): pack_target(R_R.ip, 8080)}}

    rendered = render(service(), L_R, R_R, held=held)

    assert {line for line in show_elements(rendered.elements) if line.startswith("endpoints")} == {
        "endpoints: 10.96.0.10 TCP 80 #0 -> 10.244.1.1:8080",
        "endpoints: 10.96.0.10 TCP 80 #1 -> 10.244.0.1:8080",
    }


def test_each_counter_has_its_service_port_and_the_tier_of_its_own_traffic() -> None:
    of = service(type="NodePort", ports=(HTTP_NODE_PORT,), external_traffic_policy=LOCAL)

    labels = render(of, L_R, R_R).labels

    assert {set_id.name: label for (set_id, _key), label in labels.items()} == {
        SetName.SERVICE_PORTS: Label(of.name, "http", Tier.CLUSTER),
        SetName.NODE_PORTS: Label(of.name, "http", Tier.LOCAL_POLICY),
        SetName.LOCAL_SOURCE_NODE_PORTS: Label(of.name, "http", Tier.CLUSTER),
    }


def test_every_set_has_a_row_above() -> None:
    named = {line.split(":")[0].strip() for row in ROWS for line in str(row.values[-1]).strip().splitlines()}

    assert named == set(SetName) - OF_THE_NODE - OF_AFFINITY
