"""One datagram: a header whose layout never changes, a body, and a signature over both and the channel.

| bytes | field |
|---|---|
| 0-3 | magic |
| 4 | format of the body |
| 5, 6 | oldest and newest format that the sender understands |
| 7, 8 | id of the key that signed; newest key that the sender knows |
| 9 | type of the body |
| 10-11 | flags |
| 12-19 | receiver; 0: all on the channel |
| 20-27 | sender |
| 28-35 | session |
| 36-43 | sequence number |
| 44-51 | sender's monotonic clock, ms |
| 52-55 | age of its proxy's table, 10 ms |
| 56-63 | digest of what it owns |
| 64-67 | how many that are |
| 68- | body |
| last 16 | the first half of HMAC-SHA256 |

Whoever can't read the body still learns that the sender lives. The signature covers the channel's name, so a message
of one wire can't be replayed on another.
"""

import hmac
import struct
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from proxy.announcer.bodies import FORMATS, Type, pack_body, parse_body
from proxy.announcer.layout import MOST_U32, limit
from proxy.l2.messages import Flags, Header, Message
from proxy.l2.types import MASK, Channel, MemberId

if TYPE_CHECKING:
    from hashlib import _Hash

MAGIC = b"cbL2"
LONGEST = 1500  # bytes that are read of a datagram; nobody sends more
_HEADER = struct.Struct("!4sBBBBBBHQQQQQIQI")
_NUMBERS = 7  # fields before the flags
_TYPE_AT, _TO_AT, _SEQ_AT = 9, 12, 36  # their first bytes
_BEAT = bytes((Type.BEAT,))
_SIGNATURE_BYTES = 16
_KNOWN_FLAGS = Flags.DRAINING | Flags.RESTARTING | Flags.STALE | Flags.SHARES
_FLAGS = tuple(map(Flags, range(_KNOWN_FLAGS.value + 1)))  # looked up, as there are 290 a second
_PADS = 0x36, 0x5C
_MS = 1000
_AGES_A_SECOND = 100


class Refusal(StrEnum):
    """Why a datagram isn't believed; stable codes, for metrics."""

    SHORT = "short"
    NOT_OURS = "not-ours"  # no magic: another program's
    UNKNOWN_KEY = "unknown-key"
    BAD_SIGNATURE = "bad-signature"
    NO_SENDER = "no-sender"


class Signing(NamedTuple):
    """How a message goes out."""

    keys: Mapping[int, bytes]  # by id
    key_id: int
    format: int = FORMATS[1]


def pack_datagram(message: Message, channel: Channel, signing: Signing) -> bytes | None:
    """Its bytes; None if the key isn't there, or there is no body."""
    key = signing.keys.get(signing.key_id)
    if key is None or message.body is None:
        return None
    header = message.header
    number, body = pack_body(message.body)
    signed = (
        _HEADER.pack(
            MAGIC,
            signing.format,
            *header.formats,
            signing.key_id,
            header.newest_key,
            number,
            header.flags.value,
            message.to,
            header.sender,
            header.session,
            limit(header.seq, MASK),
            limit(round(header.clock_s * _MS), MASK),
            limit(round(min(header.table_age_s * _AGES_A_SECOND, MOST_U32)), MOST_U32),
            header.digest,
            limit(header.count, MOST_U32),
        )
        + body
    )
    return signed + _sign(key, channel, signed)


def parse_datagram(
    data: bytes, channel: Channel, keys: Mapping[int, bytes], understood: tuple[int, int] = FORMATS
) -> Message | Refusal:
    """A genuine message; its body is None where the format or the type isn't understood, or it was cut short."""
    if len(data) < _HEADER.size + _SIGNATURE_BYTES:
        return Refusal.SHORT
    if not data.startswith(MAGIC):
        return Refusal.NOT_OURS
    signed, signature = data[:-_SIGNATURE_BYTES], data[-_SIGNATURE_BYTES:]
    fields = _HEADER.unpack_from(signed)
    _magic, layout, oldest, newest, key_id, newest_key, number = fields[:_NUMBERS]
    key = keys.get(key_id)
    if key is None:
        return Refusal.UNKNOWN_KEY
    if not hmac.compare_digest(_sign(key, channel, signed), signature):
        return Refusal.BAD_SIGNATURE
    flags, to, sender, session, seq, clock_ms, age, digest, count = fields[_NUMBERS:]
    if sender == 0:
        return Refusal.NO_SENDER
    header = Header(
        MemberId(sender),
        session,
        seq,
        clock_ms / _MS,
        _FLAGS[flags & _KNOWN_FLAGS.value],
        age / _AGES_A_SECOND,
        digest,
        count,
        (oldest, newest),
        newest_key,
    )
    readable = understood[0] <= layout <= understood[1]
    body = parse_body(number, signed[_HEADER.size :]) if readable else None
    return Message(header, body, MemberId(to))


def peek_beat(data: bytes) -> bytes | None:
    """What all heartbeats of one sender's session have in common, unverified; None: it is no heartbeat."""
    return data[_TO_AT:_SEQ_AT] if data[_TYPE_AT : _TYPE_AT + 1] == _BEAT else None


def peek_number(data: bytes) -> bytes:
    """Its number, unverified, in an order that is that of numbers."""
    return data[_SEQ_AT : _SEQ_AT + 8]


def _sign(key: bytes, channel: Channel, signed: bytes) -> bytes:
    """As `hmac.digest` does with the channel in front. That looks its hash up anew: 0.1 ms after each sleep."""
    inner, outer = _prepare(key, channel)
    found, outer = inner.copy(), outer.copy()
    found.update(signed)
    outer.update(found.digest())
    return outer.digest()[:_SIGNATURE_BYTES]


@lru_cache(maxsize=64)
def _prepare(key: bytes, channel: Channel) -> tuple["_Hash", "_Hash"]:
    """RFC 2104's two hashes, with all in them that is the same for each message; they are only ever copied."""
    block = sha256().block_size
    padded = (sha256(key).digest() if len(key) > block else key).ljust(block, b"\0")
    inner, outer = (sha256(bytes(byte ^ pad for byte in padded)) for pad in _PADS)
    inner.update(channel.encode() + b"\0")
    return inner, outer
