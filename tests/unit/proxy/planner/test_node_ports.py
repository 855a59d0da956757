"""Which addresses NodePorts answer on."""

import pytest

from endpointslice.types import IP, Node, NodeName
from proxy.planner.node_ports import choose_node_addresses

V4, OTHER_V4, V6 = IP("192.0.2.1"), IP("198.51.100.1"), IP("2001:db8::1")
HOST = frozenset((IP("203.0.113.5"), IP("2001:db8::5"), IP("127.0.0.1"), IP("::1")))


def node(*addresses: IP) -> Node:
    return Node(NodeName("n1"), addresses=addresses)


def test_an_address_of_ones_own_is_the_first_of_its_family() -> None:
    assert choose_node_addresses(["primary"], node(V4, V6), HOST, (OTHER_V4,)) == {OTHER_V4, V6}


@pytest.mark.parametrize(
    ("wanted", "of_node", "host", "chosen"),
    [
        pytest.param(["primary"], node(V4, OTHER_V4, V6), HOST, {V4, V6}, id="primary: the first of each family"),
        pytest.param(["primary"], node(V6), HOST, {V6}, id="primary: no address of a family the Node lacks"),
        pytest.param(["primary"], node(), HOST, {IP("203.0.113.5"), IP("2001:db8::5")}, id="primary: else the host's"),
        pytest.param(["primary"], None, frozenset((V4, OTHER_V4)), {V4}, id="primary: without a Node, the host's"),
        pytest.param(["primary"], node(IP("127.0.0.1"), V4), HOST, {V4}, id="primary: never loopback"),
        pytest.param(["192.0.2.0/24"], node(V4, OTHER_V4), HOST, {V4}, id="a network: the Node's addresses inside"),
        pytest.param(["203.0.113.0/24"], node(V4), HOST, {IP("203.0.113.5")}, id="a network: the host's inside"),
        pytest.param(
            ["0.0.0.0/0"], node(V4, V6), HOST, {V4, IP("203.0.113.5")}, id="all of a family, without loopback"
        ),
        pytest.param(["::/0"], node(V4, V6), HOST, {V6, IP("2001:db8::5")}, id="all of the other family"),
        pytest.param(["10.0.0.0/8", "fd00::/8"], node(V4, V6), HOST, set(), id="networks that hold none"),
    ],
)
def test_choosing_node_addresses(wanted: list[str], of_node: Node | None, host: frozenset[IP], chosen: set[IP]) -> None:
    assert choose_node_addresses(wanted, of_node, host) == chosen
