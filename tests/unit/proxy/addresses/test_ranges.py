import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import Family
from proxy.addresses.ranges import (
    address_of,
    count_addresses,
    is_buggy,
    iter_from,
    number_of,
    overlaps,
    parse_range,
    show_range,
)
from proxy.addresses.types import Range
from tests.unit.proxy.addresses.builders import V4, V6, a_range


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("192.0.2.0/30", "192.0.2.0-192.0.2.3"),
        ("192.0.2.5/30", "192.0.2.4-192.0.2.7"),
        ("192.0.2.5/32", "192.0.2.5"),
        ("192.0.2.10-192.0.2.20", "192.0.2.10-192.0.2.20"),
        ("192.0.2.10 - 192.0.2.10", "192.0.2.10"),
        ("192.0.2.010-192.0.2.011", "192.0.2.10-192.0.2.11"),
        ("2001:db8::/126", "2001:db8::-2001:db8::3"),
        ("2001:db8::1-2001:db8::ff", "2001:db8::1-2001:db8::ff"),
        ("::ffff:192.0.2.0/126", "192.0.2.0-192.0.2.3"),
    ],
)
def test_a_range_is_read(text: str, shown: str) -> None:
    assert show_range(a_range(text)) == shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("192.0.2.0/33", "neither a network nor a range"),
        ("192.0.2.5", "for one address write 192.0.2.5/32"),
        ("2001:db8::1", "for one address write 2001:db8::1/128"),
        ("web", '"web" is neither'),
        ("", "neither"),
        ("192.0.2.20-192.0.2.10", "ends before it begins; write it as 192.0.2.10-192.0.2.20"),
        ("192.0.2.1-2001:db8::1", "begins in one family"),
        ("192.0.2.1-", '"" is not an address'),
        ("x-192.0.2.1", '"x" is not an address'),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    assert said in str(parse_range(text))


def test_ranges_of_different_families_never_overlap() -> None:
    assert overlaps(a_range("0.0.0.0/0"), a_range("192.0.2.1/32"))
    assert not overlaps(a_range("0.0.0.0/0"), a_range("::/0"))
    assert not overlaps(a_range("192.0.2.0/31"), a_range("192.0.2.2/31"))


def test_a_great_range_is_counted_exactly() -> None:
    assert count_addresses([a_range("2001:db8::/32"), a_range("192.0.2.0/24")], V6, avoid_buggy=True) == 1 << 96


@given(st.integers(0, 1 << 12), st.integers(0, 600))
def test_counting_without_buggy_addresses_is_counting_one_by_one(first: int, more: int) -> None:
    held = Range(V4, first, first + more)

    counted = count_addresses([held], V4, avoid_buggy=True)

    assert counted == sum(not is_buggy(V4, number) for number in range(first, first + more + 1))


@given(
    st.lists(st.tuples(st.sampled_from(Family), st.integers(0, 99), st.integers(0, 5)), max_size=4), st.integers(0, 9)
)
def test_going_on_from_a_place_gives_the_rest(parts: list[tuple[Family, int, int]], start: int) -> None:
    ranges = [Range(family, first, first + more) for family, first, more in parts]

    assert [*iter_from(ranges, V4, start)] == [*iter_from(ranges, V4, 0)][start:]


@given(st.ip_addresses())
def test_an_address_is_its_number(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    family = V4 if address.version == 4 else V6

    assert number_of(address_of(family, int(address))) == int(address)
    assert ipaddress.ip_address(address_of(family, int(address))) == address
