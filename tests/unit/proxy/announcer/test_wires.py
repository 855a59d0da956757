"""Which wires a node is on, by its interfaces' addresses."""

import pytest

from endpointslice.types import IP
from proxy.announcer.wires import Gateway, Interface, WireLink, find_wires, wire_of
from proxy.l2.types import Channel

MAC = bytes.fromhex("020000000001")
LAN, V6 = Channel("192.0.2.0/24"), Channel("2001:db8::/64")


def interface(name: str, *addresses: tuple[str, int], number: int = 2, carrier: bool = True) -> Interface:
    return Interface(name, number, MAC, carrier, tuple((IP(ip), prefix) for ip, prefix in addresses))


def test_each_subnet_is_a_wire_with_our_address_and_its_gateway() -> None:
    eth0 = interface("eth0", ("192.0.2.11", 24), ("2001:db8::11", 64), ("fe80::1", 64))

    found = find_wires([eth0], [Gateway(2, IP("192.0.2.1")), Gateway(2, IP("fe80::9"))])

    assert found == {
        LAN: WireLink(LAN, "eth0", 2, MAC, carrier=True, own=IP("192.0.2.11"), gateway=IP("192.0.2.1")),
        V6: WireLink(V6, "eth0", 2, MAC, carrier=True, own=IP("2001:db8::11"), gateway=IP("fe80::9")),
    }


def test_of_two_interfaces_in_a_subnet_the_one_with_carrier_counts() -> None:
    down = interface("eth0", ("192.0.2.11", 24), carrier=False)
    up = interface("eth1", ("192.0.2.12", 24), number=3)

    assert find_wires([down, up], [])[LAN].interface == "eth1"


def test_of_two_that_have_carrier_the_one_that_advertisements_name_comes_first() -> None:
    one = interface("eth0", ("192.0.2.11", 24))
    other = interface("eth1", ("192.0.2.12", 24), number=3)

    assert find_wires([one, other], [])[LAN].interface == "eth0"
    assert find_wires([one, other], [], preferred=["eth1"])[LAN].interface == "eth1"
    assert find_wires([one, other._replace(carrier=False)], [], preferred=["eth1"])[LAN].interface == "eth0"


def test_an_address_of_its_own_and_a_link_local_one_are_no_wire() -> None:
    assert not find_wires([interface("lo0", ("192.0.2.11", 32), ("fe80::1", 64), ("2001:db8::1", 128))], [])


def test_a_gateway_of_another_interface_is_none_of_this_wires() -> None:
    assert find_wires([interface("eth0", ("2001:db8::11", 64))], [Gateway(3, IP("fe80::9"))])[V6].gateway is None


def test_a_gateway_given_by_hand_comes_before_the_default_route() -> None:
    found = find_wires([interface("eth0", ("192.0.2.11", 24))], [Gateway(2, IP("192.0.2.1"))], [IP("192.0.2.9")])

    assert found[LAN].gateway == "192.0.2.9"


@pytest.mark.parametrize(
    ("ip", "wire"),
    [
        ("192.0.2.77", "192.0.2.64/26"),
        ("192.0.2.1", "192.0.2.0/24"),
        ("2001:db8::5", "2001:db8::/64"),
        ("10.0.0.1", None),
    ],
)
def test_an_address_is_on_the_smallest_wire_that_holds_it(ip: str, wire: str | None) -> None:
    assert wire_of(IP(ip), [LAN, Channel("192.0.2.64/26"), V6]) == wire
