"""The elements that belong to no Service."""

import pytest

from endpointslice.types import CIDR, IP, Family
from proxy.planner.fragments import NodeRanges, render_node
from tests.elements_text import OF_BOTH, OF_THE_NODE, show_elements

NODE_ROWS = [
    pytest.param(
        NodeRanges(frozenset(), (), (), masquerade_all=False),
        "cluster_ip_sources: 0.0.0.0-255.255.255.255",
        id="no detector: everybody's ClusterIP traffic keeps its source",
    ),
    pytest.param(
        NodeRanges(frozenset(), (CIDR("10.244.0.0/16"),), (), masquerade_all=False),
        """
        local_pods: 10.244.0.0-10.244.255.255
        cluster_ip_sources: 10.244.0.0-10.244.255.255
        """,
        id="a detector: only pods keep theirs",
    ),
    pytest.param(
        NodeRanges(frozenset(), (CIDR("10.244.0.0/16"),), (), masquerade_all=True),
        "local_pods: 10.244.0.0-10.244.255.255",
        id="masqueradeAll: nobody keeps theirs",
    ),
    pytest.param(
        NodeRanges(frozenset(), (CIDR("fd00::/64"),), (), masquerade_all=False),
        "cluster_ip_sources: 0.0.0.0-255.255.255.255",
        id="a detector of the other family is none",
    ),
    pytest.param(
        NodeRanges(frozenset(), (), (), masquerade_all=False, interfaces=("cni0", "veth*")),
        """
        local_interfaces: cni0-cni0
        local_interfaces: veth-veth************
        cluster_ip_interfaces: cni0-cni0
        cluster_ip_interfaces: veth-veth************
        """,
        id="a detector by device: what came from elsewhere keeps no source",
    ),
    pytest.param(
        NodeRanges(frozenset(), (), (), masquerade_all=True, interfaces=("cni0",)),
        "local_interfaces: cni0-cni0",
        id="masqueradeAll: nobody from a device keeps theirs either",
    ),
    pytest.param(
        NodeRanges(frozenset({IP("192.0.2.1"), IP("2001:db8::1")}), (), (), masquerade_all=True),
        """
        node_addresses: 192.0.2.1
        external_addresses: 192.0.2.1
        binding_addresses: 192.0.2.1
        """,
        id="the node's addresses of this family",
    ),
    pytest.param(
        NodeRanges(
            frozenset(),
            (),
            (
                CIDR("10.96.128.0/17"),
                CIDR("172.16.0.0/16"),
                CIDR("10.96.0.0/12"),
                CIDR("fd00:96::/112"),
                CIDR("10.96.0.0/16"),
                CIDR("172.16.0.0/16"),
            ),
            masquerade_all=True,
        ),
        """
        service_cidrs: 10.96.0.0-10.111.255.255
        service_cidrs: 172.16.0.0-172.16.255.255
        """,
        id="networks inside others are left out",
    ),
]


@pytest.mark.parametrize(("ranges", "lines"), NODE_ROWS)
def test_the_elements_of_the_node_in_ipv4(ranges: NodeRanges, lines: str) -> None:
    shown = show_elements(render_node(ranges, [Family.IPV4]), of_the_node=True)

    assert shown == {line.strip() for line in lines.strip().splitlines()}


def test_the_elements_of_the_node_in_ipv6() -> None:
    ranges = NodeRanges(frozenset({IP("2001:db8::1")}), (), (CIDR("fd00:96::/112"),), masquerade_all=False)

    assert show_elements(render_node(ranges, [Family.IPV6]), of_the_node=True) == {
        "node_addresses: 2001:db8::1",
        "external_addresses: 2001:db8::1",
        "binding_addresses: 2001:db8::1",
        "service_cidrs: fd00:96::-fd00:96::ffff",
        "cluster_ip_sources: ::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    }


def test_each_of_these_sets_is_written_even_where_it_is_empty() -> None:
    fragment = render_node(NodeRanges(frozenset(), (), (), masquerade_all=True), list(Family))

    assert {(set_id.family, set_id.name) for set_id in fragment} == {
        (family, name) for family in Family for name in OF_THE_NODE | OF_BOTH
    }
