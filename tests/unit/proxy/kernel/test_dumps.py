"""What a dump lists, back to keys and data: all that we write, and whatever else the kernel may say."""

import struct
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import Family
from proxy.kernel.attributes import pack_attribute, pack_name, pack_nest, pack_u32
from proxy.kernel.dumps import Unusable, iter_elements, unpack_counters, unpack_elements
from proxy.kernel.elements import DATA, FLAGS, KEY, LIST_ELEMENT, LIST_ELEMENTS, VALUE, pack_adds, pack_verdict
from proxy.kernel.ruleset import KERNEL_SETS, LAYOUTS, Data, SetId, SetName, address_bytes, key_bytes

PORTS = SetId(Family.IPV4, SetName.NODE_PORTS)
KEY_A, KEY_B = b"\6\0\0\0\0\x50\0\0", b"\6\0\0\0\0\x51\0\0"
SETS = st.builds(SetId, st.sampled_from(Family), st.sampled_from(KERNEL_SETS))
VERDICTS = st.sampled_from([b"drop", b"goto refuse", b"goto pick_3", b"goto node_port_pick_12"])


def listed(*elements: bytes) -> bytes:
    """The payload of one message of a dump."""
    return pack_name(1, "closeby") + pack_name(2, "a set") + pack_nest(LIST_ELEMENTS, *elements)


def element(key: bytes | None, *others: bytes) -> bytes:
    """One element as the kernel lists it."""
    keys = () if key is None else (pack_nest(KEY, pack_attribute(VALUE, key)),)
    return pack_nest(LIST_ELEMENT, *keys, *others)


def counter(packets: int, name: str = "counter") -> bytes:
    """An element's expression: bytes are always three times the packets here."""
    numbers = (pack_attribute(1, struct.pack("!Q", packets * 3)), pack_attribute(2, struct.pack("!Q", packets)))
    return pack_nest(7, pack_name(1, name), pack_nest(2, *numbers))


@st.composite
def sets_of_elements(draw: st.DrawFn) -> tuple[SetId, dict[bytes, bytes]]:
    """A set and elements that fit it; no ranges, which have a law of their own."""
    set_id = draw(SETS.filter(lambda one: not LAYOUTS[one.name].interval))
    size = key_bytes(set_id)
    data_size = address_bytes(set_id.family) + 4
    data = {
        Data.NONE: st.just(b""),
        Data.VERDICT: VERDICTS,
        Data.ENDPOINT: st.binary(min_size=data_size, max_size=data_size),
    }[LAYOUTS[set_id.name].data]
    return set_id, draw(st.dictionaries(st.binary(min_size=size, max_size=size), data, max_size=30))


@st.composite
def sets_of_ranges(draw: st.DrawFn) -> tuple[SetId, dict[bytes, bytes]]:
    """An interval set with ranges that don't overlap; some touch, some reach either end of the address space."""
    set_id = SetId(draw(st.sampled_from(Family)), SetName.LOCAL_PODS)
    size = address_bytes(set_id.family)
    top = (1 << 8 * size) - 1
    bounds = sorted(draw(st.sets(st.integers(0, top) | st.sampled_from([0, 1, 2, top - 1, top]), max_size=8)))
    ranges = {}
    for first, last in zip(bounds[::2], bounds[1::2], strict=False):
        ranges[first.to_bytes(size) + last.to_bytes(size)] = b""
    return set_id, ranges


@given(sets_of_elements() | sets_of_ranges())
def test_what_we_pack_is_what_we_read(packed: tuple[SetId, dict[bytes, bytes]]) -> None:
    set_id, elements = packed

    assert unpack_elements(set_id, (message.payload for message in pack_adds(set_id, elements))) == elements


@given(st.binary(max_size=120), SETS)
def test_any_bytes_give_elements_or_a_reason_and_no_exception(noise: bytes, set_id: SetId) -> None:
    for payload in (noise, pack_attribute(LIST_ELEMENTS, noise), listed(pack_attribute(LIST_ELEMENT, noise))):
        unpack_elements(set_id, [payload])
        unpack_counters([payload])


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        pytest.param([], {}, id="no elements"),
        pytest.param([element(KEY_A, pack_verdict(b"drop"))], {KEY_A: b"drop"}, id="a verdict"),
        pytest.param(
            [element(KEY_A, pack_verdict(b"drop"), counter(1)), element(KEY_B, pack_verdict(b"drop"), counter(2))],
            {KEY_A: b"drop", KEY_B: b"drop"},
            id="counters that differ",
        ),
        pytest.param(
            [element(KEY_A, pack_verdict(b"drop"), pack_u32(99, 7)), element(KEY_B, pack_verdict(b"drop"))],
            {KEY_A: b"drop", KEY_B: b"drop"},
            id="an attribute that we don't know",
        ),
        pytest.param(
            [
                element(KEY_A, pack_u32(99, 7), pack_verdict(b"drop")),
                element(KEY_B, pack_u32(99, 8), pack_verdict(b"drop")),
            ],
            {KEY_A: b"drop", KEY_B: b"drop"},
            id="one whose value changes between key and data",
        ),
        pytest.param(
            [pack_nest(LIST_ELEMENT, pack_verdict(b"drop"), pack_nest(KEY, pack_attribute(VALUE, KEY_A)))],
            {KEY_A: b"drop"},
            id="data before the key",
        ),
        pytest.param(
            [element(KEY_A, pack_nest(DATA, pack_nest(2, pack_u32(1, 0xFFFFFFF0))))],
            {KEY_A: b"verdict -16"},
            id="a verdict that we don't know keeps its number",
        ),
        pytest.param([element(KEY_A), element(KEY_A)], Unusable.REPEATED, id="listed twice"),
        pytest.param([element(None, pack_verdict(b"drop"))], Unusable.FOREIGN, id="a catch-all, which we never write"),
    ],
)
def test_a_verdict_map(elements: Iterable[bytes], expected: dict[bytes, bytes] | Unusable) -> None:
    assert unpack_elements(PORTS, [listed(*elements)]) == expected


def test_messages_of_one_dump_add_up() -> None:
    payloads = [listed(element(KEY_A, pack_verdict(b"drop"))), listed(element(KEY_B, pack_verdict(b"goto pick_1")))]

    assert unpack_elements(PORTS, payloads) == {KEY_A: b"drop", KEY_B: b"goto pick_1"}


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        pytest.param(
            [element(KEY_A, pack_verdict(b"drop"), counter(1)), element(KEY_B, pack_verdict(b"drop"), counter(2**40))],
            {KEY_A: 1, KEY_B: 2**40},
            id="one each",
        ),
        pytest.param([element(KEY_A, pack_verdict(b"drop"))], {KEY_A: 0}, id="none"),
        pytest.param([element(KEY_A, counter(5, "quota"))], {KEY_A: 0}, id="another expression"),
        pytest.param([element(KEY_A, counter(5))], {KEY_A: 5}, id="an echo that leaves the data out"),
        pytest.param(
            [element(KEY_A, counter(5)), element(KEY_A, counter(6))], Unusable.REPEATED, id="one listed twice"
        ),
    ],
)
def test_counters(elements: Iterable[bytes], expected: dict[bytes, int] | Unusable) -> None:
    assert unpack_counters([listed(*elements)]) == expected


END = pack_u32(FLAGS, 1)


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        pytest.param([element(bytes(4), END)], {}, id="the end at zero alone"),
        pytest.param(
            [element(b"\x0a\0\1\0", END), element(b"\x0a\0\0\0")],
            {b"\x0a\0\0\0\x0a\0\0\xff": b""},
            id="end listed first",
        ),
        pytest.param(
            [element(b"\x0a\0\0\0"), element(b"\x0a\0\1\0"), element(b"\x0a\0\2\0", END)],
            {b"\x0a\0\0\0\x0a\0\0\xff": b"", b"\x0a\0\1\0\x0a\0\1\xff": b""},
            id="a start ends the range before",
        ),
        pytest.param([element(b"\x0a\0\0\0")], {b"\x0a\0\0\0\xff\xff\xff\xff": b""}, id="no end"),
        pytest.param([element(bytes(16))], Unusable.FOREIGN, id="a key of another size"),
        pytest.param([element(None)], Unusable.FOREIGN, id="no key"),
        pytest.param([element(bytes(4)), element(bytes(4))], Unusable.REPEATED, id="listed twice"),
    ],
)
def test_ranges(elements: Iterable[bytes], expected: dict[bytes, bytes] | Unusable) -> None:
    assert unpack_elements(SetId(Family.IPV4, SetName.LOCAL_PODS), [listed(*elements)]) == expected


def test_an_element_like_the_first_but_for_its_flags_is_not_taken_for_it() -> None:
    plain, flagged = element(KEY_A, pack_u32(FLAGS, 0)), element(KEY_B, END)

    assert [one.end for one in iter_elements([listed(plain, flagged)])] == [False, True]
