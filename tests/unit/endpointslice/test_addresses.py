import ipaddress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from endpointslice.addresses import family_of, join_host_port, pack_cidr, pack_ip, parse_cidr, parse_ip
from endpointslice.types import CIDR, IP, Family
from tests.strategies import all_ips, families


@pytest.mark.parametrize(
    ("text", "ip"),
    [
        pytest.param("10.0.0.11", "10.0.0.11", id="canonical IPv4 stays"),
        pytest.param("10.0.0.011", "10.0.0.11", id="leading zeros are decimal, not octal"),
        pytest.param("010.000.00.0008", "10.0.0.8", id="any number of leading zeros"),
        pytest.param("0.0.0.0", "0.0.0.0", id="all zeros"),
        pytest.param("255.255.255.255", "255.255.255.255", id="largest IPv4"),
        pytest.param("fd00::1", "fd00::1", id="canonical IPv6 stays"),
        pytest.param("FD00:0:0:0::0001", "fd00::1", id="IPv6 is lowered and shortened"),
        pytest.param("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0", id="a gap of one group is written out"),
        pytest.param("1:2:3:4:5:6::7", "1:2:3:4:5:6:0:7", id="a gap of one group in the middle"),
        pytest.param("1:0:0:2::3", "1:0:0:2::3", id="the longer of two gaps is the one left out"),
        pytest.param("::", "::", id="unspecified IPv6"),
        pytest.param("::ffff:10.0.0.1", "10.0.0.1", id="IPv4-mapped is IPv4"),
        pytest.param("::ffff:010.0.0.01", "10.0.0.1", id="IPv4-mapped with leading zeros"),
        pytest.param("::ffff:a00:1", "10.0.0.1", id="IPv4-mapped in hexadecimal"),
        pytest.param("0:0:0:0:0:FFFF:0a00:0001", "10.0.0.1", id="IPv4-mapped written out"),
        pytest.param("::10.0.0.1", "::a00:1", id="IPv4-compatible isn't IPv4-mapped"),
        pytest.param("64:ff9b::10.0.0.1", "64:ff9b::a00:1", id="dotted tail of another prefix"),
        pytest.param("", None, id="empty"),
        pytest.param("10.0.0", None, id="three octets"),
        pytest.param("10.0.0.0.1", None, id="five octets"),
        pytest.param("10.0.0.256", None, id="octet too large"),
        pytest.param("10.0.0.-1", None, id="negative octet"),
        pytest.param("10.0..1", None, id="empty octet"),
        pytest.param("10.0.0.1 ", None, id="space behind"),
        pytest.param("10.0.0.\u0661", None, id="a digit of another script"),
        pytest.param("10.0.0.1/32", None, id="a network"),
        pytest.param("fe80::1%eth0", None, id="zone id"),
        pytest.param("::ffff:10.0.0.1%eth0", None, id="zone id behind a dotted tail"),
        pytest.param("fd00::1::2", None, id="two gaps"),
        pytest.param("1:2:3:4:5:6:7:8:9", None, id="nine groups"),
        pytest.param("1:2:3:4::5:6:7:8", None, id="a gap of nothing"),
        pytest.param("fd00::10.0.0.256", None, id="dotted tail out of range"),
        pytest.param("fd00::12345", None, id="group too long"),
        pytest.param("web.example.com", None, id="a host name"),
    ],
)
def test_parse_ip(text: str, ip: str | None) -> None:
    assert ip == parse_ip(text)


@given(st.ip_addresses(v=6))
@example(ipaddress.IPv6Address("1:2:3:4:5:6:7:0"))
@example(ipaddress.IPv6Address("::ffff:a00:1"))
@example(ipaddress.IPv6Address("1::"))
def test_every_spelling_of_an_ipv6_address_parses_to_the_same_text(address: ipaddress.IPv6Address) -> None:
    canonical = address.compressed if address.ipv4_mapped is None else str(address.ipv4_mapped)

    assert {canonical} == {parse_ip(spelling) for spelling in (str(address), address.exploded, str(address).upper())}


@given(st.text(alphabet="01fF:./% ", max_size=24) | st.text(max_size=8))
def test_any_text_gives_an_address_that_parses_to_itself_or_none(text: str) -> None:
    ip = parse_ip(text)

    assert ip is None or (ip == parse_ip(ip) and ipaddress.ip_address(ip).compressed == ip)


@pytest.mark.parametrize(
    ("text", "cidr"),
    [
        pytest.param("10.244.0.0/16", "10.244.0.0/16", id="canonical stays"),
        pytest.param("10.244.1.7/16", "10.244.0.0/16", id="host bits are cleared"),
        pytest.param("10.244.001.07/024", "10.244.1.0/24", id="leading zeros"),
        pytest.param("0.0.0.0/0", "0.0.0.0/0", id="everything"),
        pytest.param("10.0.0.1/32", "10.0.0.1/32", id="one address"),
        pytest.param("FD00::1/64", "fd00::/64", id="IPv6"),
        pytest.param("::/0", "::/0", id="everything of IPv6"),
        pytest.param("::ffff:10.1.2.3/112", "10.1.0.0/16", id="IPv4-mapped is IPv4"),
        pytest.param("::ffff:10.1.2.3/64", None, id="more than the IPv4-mapped addresses"),
        pytest.param("10.0.0.1", None, id="no length"),
        pytest.param("10.0.0.0/", None, id="empty length"),
        pytest.param("10.0.0.0/33", None, id="length too large"),
        pytest.param("10.0.0.0/-1", None, id="negative length"),
        pytest.param("10.0.0.0/255.0.0.0", None, id="a netmask"),
        pytest.param("10.0.0.0/²", None, id="a digit that isn't decimal"),
        pytest.param("10.0.0/8", None, id="a bad address"),
        pytest.param("", None, id="empty"),
    ],
)
def test_parse_cidr(text: str, cidr: str | None) -> None:
    assert cidr == parse_cidr(text)


@given(families.flatmap(all_ips))
def test_packing_gives_the_bytes_of_the_address(ip: IP) -> None:
    address = ipaddress.ip_address(ip)

    assert address.packed == pack_ip(ip)
    assert family_of(ip) is (Family.IPV4 if address.version == 4 else Family.IPV6)


@pytest.mark.parametrize(
    ("cidr", "packed"),
    [
        pytest.param("10.244.0.0/16", "0af40000 0af4ffff", id="IPv4"),
        pytest.param("10.0.0.1/32", "0a000001 0a000001", id="one address"),
        pytest.param("fd00::/120", f"fd00{'00' * 14} fd00{'00' * 13}ff", id="IPv6"),
    ],
)
def test_a_packed_network_is_its_first_and_last_address(cidr: str, packed: str) -> None:
    assert bytes.fromhex(packed) == pack_cidr(CIDR(cidr))


def test_an_ipv6_address_is_bracketed_before_its_port() -> None:
    assert join_host_port(IP("10.0.0.1"), 80) == "10.0.0.1:80"
    assert join_host_port(IP("fd00::1"), 80) == "[fd00::1]:80"
