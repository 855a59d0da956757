"""The feed's frames: what a reader knows in the end is what the writer served, and nonsense is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import IP, NodeName
from proxy.announcer.around import Around
from proxy.announcer.feed_frames import (
    LARGEST_BYTES,
    LENGTH_BYTES,
    Alive,
    BrokenFrameError,
    Part,
    apply_part,
    pack_frame,
    parse_content,
    parse_length,
    split_change,
)
from proxy.announcer.served import Said, Served
from proxy.l2.candidates import Demand, NodeFacts, Reach
from tests.fuzz_inputs import damaged

NODES = [NodeName(name) for name in ("n1", "n2", "n3")]
demands = st.builds(
    Demand,
    st.booleans(),
    st.booleans(),
    st.frozensets(st.sampled_from(NODES)),
    st.dictionaries(st.sampled_from(NODES), st.integers(1, 100)),
    st.dictionaries(st.sampled_from(NODES), st.integers(1, 9)),
    st.frozensets(st.sampled_from(NODES)),
    st.booleans(),
)
ips = st.integers(0, 300).map(lambda number: IP(f"192.0.{number // 256}.{number % 256}"))
tables = st.dictionaries(ips, demands, max_size=250).map(
    lambda demands: {vip: Served(vip, demand, "lan") for vip, demand in demands.items()}
)
facts = st.builds(NodeFacts, st.sampled_from(NODES), st.booleans(), st.booleans(), st.booleans())
reaches = st.builds(
    Reach,
    st.none() | st.frozensets(st.sampled_from(NODES)),
    st.dictionaries(st.sampled_from(NODES), st.integers(1, 100)),
    st.dictionaries(st.sampled_from(NODES), st.frozensets(st.text(max_size=3), min_size=1)),
)
surroundings = st.builds(
    Around,
    st.dictionaries(st.sampled_from(NODES), facts),
    st.booleans(),
    st.dictionaries(st.text(max_size=3), reaches),
    st.lists(st.text(max_size=9), max_size=2).map(tuple),
)
all_told = st.builds(Said, tables, surroundings)
SEEDS = [
    pack_frame(Part((Served(IP("192.0.2.1"), Demand(ready={NODES[0]: 1})),), age_s=1.0)),
    pack_frame(Alive(2.0)),
]


@given(st.one_of(st.none(), all_told), all_told)
def test_a_reader_ends_with_what_is_told(before: Said | None, after: Said) -> None:
    known = before or Said({})

    for frame in split_change(before, after, 0.5):
        packed = pack_frame(frame)
        read = parse_content(packed[LENGTH_BYTES:])
        assert read == frame
        assert isinstance(read, Part)
        known = apply_part(known, read)

    assert known == after


@given(all_told)
def test_who_knows_nothing_hears_of_everything_even_if_that_is_nothing(after: Said) -> None:
    frames = list(split_change(None, after, 0.0))

    assert frames[0].first
    assert [frame.last for frame in frames] == [False] * (len(frames) - 1) + [True]


@given(st.one_of(st.binary(max_size=100), damaged(SEEDS)))
def test_any_bytes_are_a_frame_or_are_refused(data: bytes) -> None:
    try:
        parse_length(data[:LENGTH_BYTES])
        parse_content(data[LENGTH_BYTES:])
    except BrokenFrameError as error:
        assert str(error)  # noqa: PT017  # either is right


def test_a_length_beyond_reason_is_refused_before_a_byte_is_read() -> None:
    with pytest.raises(BrokenFrameError, match="a frame of 67108865 bytes"):
        parse_length((LARGEST_BYTES + 1).to_bytes(LENGTH_BYTES, "big"))
