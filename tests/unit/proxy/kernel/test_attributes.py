"""Netlink attributes: packed as linux/netlink.h has them, parsed whatever comes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.kernel.attributes import (
    iter_attributes,
    pack_attribute,
    pack_name,
    pack_nest,
    pack_u32,
    parse_attributes,
    parse_name,
    parse_number,
)


@pytest.mark.parametrize(
    ("packed", "expected"),
    [
        pytest.param(pack_attribute(1, b"\x06"), "05000100 06000000", id="a byte is padded to four"),
        pytest.param(pack_attribute(2, b""), "04000200", id="an empty value is a header"),
        pytest.param(pack_u32(3, 258), "08000300 00000102", id="numbers are in network order"),
        pytest.param(pack_name(1, "ip"), "07000100 69700000", id="names end in a zero"),
        pytest.param(pack_nest(4, pack_u32(1, 1)), "0c000400 08000100 00000001", id="a nest holds attributes"),
    ],
)
def test_packing(packed: bytes, expected: str) -> None:
    assert packed.hex() == expected.replace(" ", "")


@given(st.lists(st.tuples(st.integers(1, 0x3FFF), st.binary(max_size=20)), unique_by=lambda one: one[0]))
def test_what_was_packed_is_parsed(attributes: list[tuple[int, bytes]]) -> None:
    buffer = b"".join(pack_attribute(kind, value) for kind, value in attributes)

    assert parse_attributes(buffer) == dict(attributes)


@given(st.binary(max_size=64))
def test_any_bytes_are_parsed_within_their_bounds(buffer: bytes) -> None:
    for _kind, first, last in iter_attributes(buffer):
        assert 4 <= first <= last <= len(buffer)


def test_the_nested_flag_is_no_part_of_the_type() -> None:
    assert parse_attributes(pack_attribute(0x8003, b"abcd")) == {3: b"abcd"}


def test_names_and_numbers_of_nothing() -> None:
    assert parse_name(b"pick\xff\0") == "pick\\xff"
    assert parse_name(b"") == ""
    assert parse_number(b"") == 0
