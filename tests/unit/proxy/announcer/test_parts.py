from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import IP
from proxy.announcer.bodies import pack_body, parse_body
from proxy.announcer.parts import split_message
from proxy.l2.election import NO_HEIRS
from proxy.l2.messages import Beat, Claims, ClaimState, Header, Message
from proxy.l2.types import MASK, Channel, Key, MemberId, Version, key_hash

ENTRIES = tuple(
    ClaimState(Key(IP(f"192.0.2.{number}"), Channel("192.0.2.0/24")), Version(1, MemberId(7)), NO_HEIRS)
    for number in range(100)
)
MIDDLE = 1 << 63
LONGEST, OTHERS = 1200, 84  # bytes of a datagram, of its header and signature


def split(low: int, high: int) -> list[Claims]:
    parts = split_message(Message(Header(MemberId(7), 1, 1, 1.0), Claims(ENTRIES, low, high)))
    bodies = [part.body for part in parts]
    assert all(isinstance(body, Claims) for body in bodies)
    return [body for body in bodies if isinstance(body, Claims)]


def test_the_parts_of_a_complete_list_are_complete_for_stretches_that_touch_each_other() -> None:
    parts = split(0, MASK + 1)

    assert len(parts) > 2
    assert [part.low for part in parts] == [0, *(part.high for part in parts[:-1])]
    assert parts[-1].high == MASK + 1
    assert all(part.low <= key_hash(entry.key) < part.high for part in parts for entry in part.entries)


def test_claims_outside_the_stretch_of_a_list_are_told_and_stretch_it_no_further() -> None:
    parts = split(MIDDLE, MIDDLE + 5)

    assert {entry for part in parts for entry in part.entries} == set(ENTRIES)
    assert [(part.low, part.high) for part in parts if part.low < part.high] == [(MIDDLE, MIDDLE + 5)]


def test_the_parts_of_an_incomplete_list_are_incomplete() -> None:
    assert {(part.low, part.high) for part in split(0, 0)} == {(0, 0)}


@given(st.dictionaries(st.integers(1, MASK).map(MemberId), st.integers(0, 655).map(float), max_size=260))
def test_the_parts_of_a_heartbeat_are_short_and_say_what_it_says(ages_s: dict[MemberId, float]) -> None:
    wires = frozenset({Channel("192.0.2.0/24")})
    parts = split_message(Message(Header(MemberId(7), 1, 1, 1.0), Beat(ages_s, roster=9, wires=wires)))
    bodies = [part.body for part in parts if isinstance(part.body, Beat)]

    assert all(len(pack_body(body)[1]) <= LONGEST - OTHERS for body in bodies)
    assert {member: age_s for body in bodies for member, age_s in body.ages_s.items()} == ages_s
    assert all(sum(body.is_about(member) for body in bodies) == 1 for member in (MemberId(1), *ages_s, MemberId(MASK)))
    assert all(body.is_about(member) for body in bodies for member in body.ages_s)
    assert [parse_body(*pack_body(body)) for body in bodies] == bodies
