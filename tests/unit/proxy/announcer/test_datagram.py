"""Datagrams: keys, channels, formats, and a layout that may never change."""

import hmac

import pytest

from proxy.announcer.datagram import Refusal, Signing, pack_datagram, parse_datagram
from proxy.l2.messages import Flags, Header, Message, Want
from proxy.l2.types import NODE_NETWORK, Channel, MemberId

KEYS = {1: b"the old key", 2: b"the new key"}
WIRE = Channel("192.0.2.0/24")
HEADER = Header(
    sender=MemberId(0x0102030405060708),
    session=0x1112131415161718,
    seq=0x2122232425262728,
    clock_s=12.345,
    flags=Flags.DRAINING | Flags.STALE,
    table_age_s=1.25,
    digest=0x3132333435363738,
    count=9,
    formats=(1, 3),
    newest_key=2,
)
WANT = Message(HEADER, Want(), MemberId(0x4142434445464748))
# Written down once and for all: a change to the header cuts old and new members off from each other.
FROZEN = (
    "63624c32" + "01" + "0103" + "0102" + "03" + "0005" + "4142434445464748" + "0102030405060708" + "1112131415161718"
    "2122232425262728" + "0000000000003039" + "0000007d" + "3132333435363738" + "00000009"
)


def packed(key_id: int = 1) -> bytes:
    data = pack_datagram(WANT, WIRE, Signing(KEYS, key_id))
    assert data is not None
    return data


def test_the_header_is_frozen() -> None:
    assert packed()[:-16].hex() == FROZEN


@pytest.mark.parametrize("key", [b"short", b"k" * 64, b"k" * 65], ids=["short", "a block", "longer"])
def test_a_signature_is_the_first_half_of_the_standard_hmac_over_channel_and_message(key: bytes) -> None:
    data = pack_datagram(WANT, WIRE, Signing({1: key}, 1))

    assert data is not None
    assert data[-16:] == hmac.digest(key, WIRE.encode() + b"\0" + data[:-16], "sha256")[:16]


@pytest.mark.parametrize("key_id", [1, 2], ids=["the old key", "the new key"])
def test_both_keys_are_accepted_while_they_are_changed(key_id: int) -> None:
    assert parse_datagram(packed(key_id), WIRE, KEYS) == WANT


@pytest.mark.parametrize(
    ("data", "channel", "keys", "why"),
    [
        pytest.param(packed(), WIRE, {2: KEYS[2]}, Refusal.UNKNOWN_KEY, id="a key that was taken away"),
        pytest.param(packed(), WIRE, {1: b"another"}, Refusal.BAD_SIGNATURE, id="a wrong key"),
        pytest.param(packed(), NODE_NETWORK, KEYS, Refusal.BAD_SIGNATURE, id="replayed on another channel"),
        pytest.param(packed() + b"x", WIRE, KEYS, Refusal.BAD_SIGNATURE, id="longer by one byte"),
        pytest.param(packed()[:83], WIRE, KEYS, Refusal.SHORT, id="cut"),
        pytest.param(b"GET / HTTP/1.1\r\n" * 8, WIRE, KEYS, Refusal.NOT_OURS, id="another program's"),
        pytest.param(b"", WIRE, KEYS, Refusal.SHORT, id="nothing"),
    ],
)
def test_what_is_refused(data: bytes, channel: Channel, keys: dict[int, bytes], why: Refusal) -> None:
    assert parse_datagram(data, channel, keys) is why


def test_without_its_key_nothing_is_sent() -> None:
    assert pack_datagram(WANT, WIRE, Signing(KEYS, 3)) is None
