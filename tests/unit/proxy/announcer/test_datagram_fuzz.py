"""The wire format's laws: what goes in comes out, and strangers' bytes give a refusal or a message, nothing else."""

import hmac

from hypothesis import given
from hypothesis import strategies as st

from proxy.announcer.bodies import FORMATS, parse_body
from proxy.announcer.datagram import Refusal, Signing, pack_datagram, parse_datagram
from proxy.announcer.parts import split_message
from proxy.l2.messages import Beat, Claims, Header, Message, Offer
from proxy.l2.types import Channel, MemberId
from tests.fuzz_inputs import damaged
from tests.unit.proxy.announcer.messages import WIRES, channels, messages

KEYS = {1: b"the old key", 2: b"the new key"}
SIGNING = Signing(KEYS, 2)
WIRE = WIRES[0]
LONGEST = 1200


def packed(message: Message, channel: Channel = WIRE, signing: Signing = SIGNING) -> bytes:
    data = pack_datagram(message, channel, signing)
    assert data is not None
    return data


SAMPLES = st.builds(packed, messages)


@given(messages, channels, st.sampled_from([1, 2]))
def test_a_message_comes_out_as_it_went_in(message: Message, channel: Channel, key: int) -> None:
    assert parse_datagram(packed(message, channel, Signing(KEYS, key)), channel, KEYS) == message


@given(messages, st.data())
def test_any_bit_that_falls_over_is_noticed(message: Message, data: st.DataObject) -> None:
    whole = packed(message)
    at = data.draw(st.integers(0, len(whole) * 8 - 1))
    broken = bytearray(whole)
    broken[at // 8] ^= 1 << at % 8

    assert isinstance(parse_datagram(bytes(broken), WIRE, KEYS), Refusal)


@given(messages, st.data())
def test_a_cut_datagram_is_refused(message: Message, data: st.DataObject) -> None:
    whole = packed(message)

    assert isinstance(parse_datagram(whole[: data.draw(st.integers(0, len(whole) - 1))], WIRE, KEYS), Refusal)


@given(st.one_of(st.binary(max_size=200), SAMPLES.flatmap(lambda data: damaged([data]))), channels)
def test_any_bytes_give_a_message_or_a_refusal(data: bytes, channel: Channel) -> None:
    assert isinstance(parse_datagram(data, channel, KEYS), Message | Refusal)


@given(st.integers(0, 255), st.binary(max_size=300))
def test_any_bytes_give_a_body_or_none_even_where_the_signature_is_right(number: int, data: bytes) -> None:
    parse_body(number, data)


@given(messages, st.binary(max_size=15))  # a heartbeat may have 16 bytes more already
def test_what_a_newer_version_adds_to_a_body_is_skipped(message: Message, more: bytes) -> None:
    grown = _signed_anew(packed(message)[:-16] + more)

    assert parse_datagram(grown, WIRE, KEYS) == message


@given(messages, st.integers(FORMATS[1] + 1, 255))
def test_of_a_newer_format_the_header_is_read(message: Message, newer: int) -> None:
    found = parse_datagram(packed(message, signing=SIGNING._replace(format=newer)), WIRE, KEYS)

    assert isinstance(found, Message)
    assert (found.header, found.to, found.body) == (message.header, message.to, None)


@given(messages)
def test_parts_are_short_enough_and_say_together_what_the_whole_says(message: Message) -> None:
    parts = split_message(message)

    assert all(len(packed(part)) <= LONGEST for part in parts)
    assert [part.header.seq for part in parts] == sorted({part.header.seq for part in parts})
    if isinstance(message.body, Claims):
        bodies = [part.body for part in parts if isinstance(part.body, Claims)]
        assert {entry for body in bodies for entry in body.entries} == set(message.body.entries)
        _check_ranges(message.body, bodies)
    elif isinstance(message.body, Offer):
        assert [entry for part in parts for entry in getattr(part.body, "entries", ())] == list(message.body.entries)
    else:
        assert [part.body for part in parts] == [message.body]


def _check_ranges(whole: Claims, bodies: list[Claims]) -> None:
    """They touch each other, and cover the whole range."""
    spans = [(body.low, body.high) for body in bodies if body.low < body.high]
    if whole.low >= whole.high:
        assert not spans
        return
    assert [low for low, _high in spans] == [whole.low, *(high for _low, high in spans[:-1])]
    assert spans[-1][1] == whole.high


@given(st.integers(1, 100))
def test_a_heartbeat_of_a_hundred_members_fits(count: int) -> None:
    beat = Beat({MemberId(member): 1.0 for member in range(count)}, "02:00:00:00:00:01", count)

    assert len(packed(Message(Header(MemberId(7), 1, 1, 1.0), beat))) <= LONGEST


def _signed_anew(signed: bytes) -> bytes:
    return signed + hmac.digest(KEYS[2], WIRE.encode() + b"\0" + signed, "sha256")[:16]
