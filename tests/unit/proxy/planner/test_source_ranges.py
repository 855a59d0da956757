"""Who may reach a load balancer's address."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import CIDR, IP, Family
from proxy.planner.source_ranges import allows, choose_sources, collapse_ranges
from tests.builders import service
from tests.elements_text import show_elements
from tests.rendered import render

NODE = (IP("192.0.2.1"), IP("2001:db8::1"))
VIPS = (IP("198.51.100.7"), IP("198.51.100.8"), IP("fd00:9::7"))


@pytest.mark.parametrize(
    ("ranges", "family", "expected"),
    [
        pytest.param((), Family.IPV4, (), id="without ranges everybody may"),
        pytest.param(("10.0.0.0/8",), Family.IPV4, ("10.0.0.0/8",), id="a range"),
        pytest.param(("10.0.0.0/8", "fd00::/8"), Family.IPV6, ("fd00::/8",), id="each family has its own"),
        pytest.param(("10.0.0.0/8",), Family.IPV6, (), id="ranges of the other family alone restrict nobody"),
        pytest.param(
            ("10.1.0.0/16", "10.0.0.0/8", "10.0.0.0/24", "11.0.0.0/8"),
            Family.IPV4,
            ("10.0.0.0/8", "11.0.0.0/8"),
            id="ranges inside another are left out",
        ),
        pytest.param(
            ("192.0.2.0/24",),
            Family.IPV4,
            ("192.0.2.0/24", "198.51.100.7/32", "198.51.100.8/32"),
            id="the node's own address lets the addresses themselves in",
        ),
        pytest.param(
            ("192.0.2.0/24", "198.51.100.0/24"),
            Family.IPV4,
            ("192.0.2.0/24", "198.51.100.0/24"),
            id="which may be in a range already",
        ),
        pytest.param(("0.0.0.0/0", "10.0.0.0/8"), Family.IPV4, ("0.0.0.0/0",), id="everything holds all others"),
        pytest.param(
            ("2001:db8::/32",), Family.IPV6, ("2001:db8::/32", "fd00:9::7/128"), id="the same with the other family"
        ),
    ],
)
def test_the_allowed_sources(ranges: tuple[str, ...], family: Family, expected: tuple[str, ...]) -> None:
    of = service(type="LoadBalancer", load_balancer_ips=VIPS, source_ranges=tuple(map(CIDR, ranges)))

    assert choose_sources(of, family, NODE) == expected


networks = st.builds(
    lambda address, length: CIDR(str(ipaddress.ip_network((address, length), strict=False))),
    st.integers(0, 2**32 - 1),
    st.integers(0, 32),
)


@given(st.lists(networks, max_size=8), st.integers(0, 2**32 - 1))
def test_collapsed_ranges_hold_the_same_addresses_and_never_overlap(cidrs: list[CIDR], number: int) -> None:
    collapsed = collapse_ranges(cidrs, Family.IPV4)
    client = IP(str(ipaddress.ip_address(number)))

    assert allows(collapsed, client) == allows(cidrs, client)
    parsed = [ipaddress.ip_network(cidr) for cidr in collapsed]
    assert all(one is other or not one.overlaps(other) for one in parsed for other in parsed)


def test_only_addresses_of_the_load_balancer_are_firewalled() -> None:
    of = service(
        type="LoadBalancer",
        external_ips=(IP("203.0.113.1"),),
        load_balancer_ips=VIPS[:2],
        source_ranges=(CIDR("10.0.0.0/8"), CIDR("10.1.0.0/16")),
    )

    shown = show_elements(render(of).elements)

    assert {line for line in shown if line.startswith(("firewalled", "allowed"))} == {
        "firewalled_ports: 198.51.100.7 TCP 80",
        "firewalled_ports: 198.51.100.8 TCP 80",
        "allowed_sources: 198.51.100.7 TCP 80 10.0.0.0 10.255.255.255",
        "allowed_sources: 198.51.100.8 TCP 80 10.0.0.0 10.255.255.255",
    }
