"""Ages that are looked at where they came: the same as a dictionary's."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.announcer.ages import PackedAges, pack_age
from proxy.l2.types import MASK, MemberId

# Numbers of few distinct bytes, so that one is found within others, too.
members = st.lists(st.sampled_from([0, 1, 0x2C, 0xFF]), min_size=8, max_size=8).map(
    lambda parts: MemberId(int.from_bytes(bytes(parts), "big"))
)
ages = st.one_of(st.just(math.inf), st.integers(0, 65534).map(lambda ticks: ticks / 100))


@given(st.dictionaries(members, ages, max_size=30), members)
def test_they_are_what_was_packed(wanted: dict[MemberId, float], asked: MemberId) -> None:
    packed = PackedAges(b"".join(pack_age(member, age_s) for member, age_s in wanted.items()))

    assert packed == wanted
    assert wanted == packed
    assert (len(packed), list(packed)) == (len(wanted), list(wanted))
    assert [packed[member] for member in wanted] == list(wanted.values())
    assert packed.get(asked, -1.0) == wanted.get(asked, -1.0)


def test_a_number_that_stands_across_two_entries_is_nobody() -> None:
    packed = PackedAges(pack_age(MemberId(0x0102030405060708), 1.0) + pack_age(MemberId(MASK), 2.0))

    assert packed.get(MemberId(0x0304050607080064)) is None
    with pytest.raises(KeyError):
        packed[MemberId(0x0304050607080064)]


def test_of_a_name_that_stands_twice_the_first_counts() -> None:
    packed = PackedAges(pack_age(MemberId(7), 1.0) + pack_age(MemberId(7), 2.0))

    assert (packed[MemberId(7)], len(packed), dict(packed)) == (1.0, 1, {7: 1.0})
