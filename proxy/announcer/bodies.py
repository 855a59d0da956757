"""The layout of each message's body, format 1: fields in a fixed order, and whatever follows the known ones is skipped.

So a newer version may add to a body without a new format; a change to what is there needs one.
"""

import struct
from collections.abc import Callable, Iterable
from enum import Flag, IntEnum
from functools import lru_cache
from operator import itemgetter

from endpointslice.types import NodeName
from proxy.announcer.ages import ENTRY_BYTES, PackedAges, pack_age
from proxy.announcer.ethernet import NO_MAC, format_mac, parse_mac
from proxy.announcer.layout import (
    MOST_U16,
    MOST_U32,
    Reader,
    limit,
    pack_channels,
    pack_ip,
    pack_text,
)
from proxy.l2.election import NO_HEIRS, Heirs
from proxy.l2.messages import (
    Answer,
    Asker,
    Beat,
    Body,
    Bye,
    Challenge,
    Claims,
    ClaimState,
    Clients,
    Offer,
    Release,
    Want,
)
from proxy.l2.types import MASK, Channel, Key, MemberId, Version

FORMATS = (1, 1)  # the oldest and the newest that this program understands
MOST_MEMBERS = 100  # that one datagram of a heartbeat names: with 10 bytes each it stays below 1,200


class Type(IntEnum):
    """A body's number on the wire; never given anew."""

    BEAT = 1
    CLAIMS = 2
    WANT = 3
    OFFER = 4
    RELEASE = 5
    CHALLENGE = 6
    ANSWER = 7
    BYE = 8
    CLIENTS = 9


class _Says(Flag):
    """A claim's or an offer's bits."""

    NOTHING = 0
    V6 = 1
    QUIET = 2
    RELEASED = 4
    HEIRS = 8


_BEAT = struct.Struct("!6sHB")  # MAC, roster, how many members it heard
_STRETCH = struct.Struct("!QQ")  # of members' numbers that a part of a heartbeat is about, both included
_MEMBER = struct.Struct("!Q")
_RANGE = struct.Struct("!BQQ")  # is complete, for the hashes from .. to, both included
_CLAIM = struct.Struct("!BBQQ")  # bits, index of the wire, epoch, owner
_HEIRS = struct.Struct("!QQ")
_OFFERED = struct.Struct("!BBQ")  # bits, index of the wire, epoch
_TERMS = struct.Struct("!BI")  # is quiet, grace in ms
_CLIENT = struct.Struct("!6sH")  # after its address, of the shared one's family: MAC, seconds since it asked
_MS = 1000


def pack_body(body: Body) -> tuple[Type, bytes]:
    """Its number and its bytes."""
    match body:
        case Beat():
            return Type.BEAT, _pack_beat(body)
        case Claims():
            return Type.CLAIMS, _pack_claims(body)
        case Offer():
            return Type.OFFER, _pack_offer(body)
        case Want():
            return Type.WANT, b""
        case Bye():
            return Type.BYE, b""
        case Release(wire):
            return Type.RELEASE, pack_text(wire)
        case Challenge(nonce):
            return Type.CHALLENGE, _MEMBER.pack(nonce & MASK)
        case Clients(key, entries):
            return Type.CLIENTS, _pack_clients(key, entries)
        case Answer(nonce, node):
            return Type.ANSWER, _MEMBER.pack(nonce & MASK) + pack_text(node)


def parse_body(number: int, data: bytes) -> Body | None:
    """The body; None if its number isn't known or its bytes are too few."""
    parse = _PARSERS.get(number)
    if parse is None:
        return None
    reader = Reader(data)
    body = parse(reader)
    return None if reader.short else body


def _pack_beat(beat: Beat) -> bytes:
    heard = sorted(beat.ages_s.items(), key=itemgetter(1))[:MOST_MEMBERS]
    return b"".join(
        (
            parse_mac(beat.mac) or NO_MAC,
            limit(beat.roster, MOST_U16).to_bytes(2, "big"),
            bytes((len(heard),)),
            *(pack_age(member, age_s) for member, age_s in heard),
            pack_channels(tuple(sorted(beat.wires))),
            _STRETCH.pack(beat.low, beat.high - 1) if beat.low < beat.high else b"",
        )
    )


def _parse_beat(reader: Reader) -> Beat:
    mac, roster, heard = reader.unpack(_BEAT)
    ages_s = PackedAges(reader.take(ENTRY_BYTES * heard))
    wires, low, high, short = _parse_rest(reader.rest())
    reader.short |= short
    return Beat(ages_s, _mac_text(mac), roster, wires, low, high)


@lru_cache(maxsize=1024)  # a member's is the same each time
def _parse_rest(data: bytes) -> tuple[frozenset[Channel], int, int, bool]:
    """What follows the ages: wires, from and to which member, and whether it was too short."""
    reader = Reader(data)
    wires = frozenset(reader.channels())
    low, last = reader.unpack(_STRETCH) if reader.left >= _STRETCH.size else (0, MASK)
    whole = low > last or (low, last) == (0, MASK)
    low, high = (0, 0) if whole else (low, last + 1)
    return wires, low, high, reader.short


@lru_cache(maxsize=1024)
def _mac_text(mac: bytes) -> str:
    return format_mac(mac) if mac != NO_MAC else ""


def _pack_claims(claims: Claims) -> bytes:
    wires = _wires(entry.key for entry in claims.entries)
    complete = claims.low < claims.high
    return b"".join(
        (
            _RANGE.pack(complete, claims.low if complete else 0, claims.high - 1 if complete else 0),
            pack_channels(wires),
            len(claims.entries).to_bytes(2, "big"),
            *(pack_claim(entry, wires.index(entry.key.wire)) for entry in claims.entries),
        )
    )


def pack_claim(entry: ClaimState, wire: int) -> bytes:
    """One claim; `wire`: its place among the message's wires."""
    says = _Says.NOTHING
    says |= _Says.V6 if ":" in entry.key.vip else _Says.NOTHING
    says |= _Says.QUIET if entry.quiet else _Says.NOTHING
    says |= _Says.RELEASED if entry.released else _Says.NOTHING
    says |= _Says.HEIRS if entry.heirs != NO_HEIRS else _Says.NOTHING
    epoch, owner = entry.version
    packed = _CLAIM.pack(says.value, wire, limit(epoch, MASK), owner) + pack_ip(entry.key.vip)
    return packed + _HEIRS.pack(*entry.heirs) if entry.heirs != NO_HEIRS else packed


def _parse_claims(reader: Reader) -> Claims:
    complete, low, last = reader.unpack(_RANGE)
    wires = reader.channels()
    count = reader.number(2)
    entries = tuple(_parse_claim(reader, wires) for _ in range(count) if not reader.short)
    return Claims(entries, low, last + 1) if complete and low <= last else Claims(entries)


def _parse_claim(reader: Reader, wires: tuple[Channel, ...]) -> ClaimState:
    bits, wire, epoch, owner = reader.unpack(_CLAIM)
    key = _parse_key(reader, wires, wire, is_v6=bool(bits & _Says.V6.value))
    heirs = NO_HEIRS
    if bits & _Says.HEIRS.value:
        first, second = reader.unpack(_HEIRS)
        heirs = Heirs(MemberId(first), MemberId(second))
    return ClaimState(
        key,
        Version(epoch, MemberId(owner)),
        heirs,
        quiet=bool(bits & _Says.QUIET.value),
        released=bool(bits & _Says.RELEASED.value),
    )


def _parse_key(reader: Reader, wires: tuple[Channel, ...], wire: int, *, is_v6: bool) -> Key:
    vip = reader.ip(is_v6=is_v6)
    if wire >= len(wires):
        reader.short = True
        return Key(vip, Channel(""))
    return Key(vip, wires[wire])


def _pack_offer(offer: Offer) -> bytes:
    wires = _wires(key for key, _epoch in offer.entries)
    return b"".join(
        (
            _TERMS.pack(offer.quiet, limit(round(offer.grace_s * _MS), MOST_U32)),
            pack_channels(wires),
            len(offer.entries).to_bytes(2, "big"),
            *(
                _OFFERED.pack(_Says.V6.value if ":" in key.vip else 0, wires.index(key.wire), limit(epoch, MASK))
                + pack_ip(key.vip)
                for key, epoch in offer.entries
            ),
        )
    )


def _parse_offer(reader: Reader) -> Offer:
    quiet, grace_ms = reader.unpack(_TERMS)
    wires = reader.channels()
    count = reader.number(2)
    entries: list[tuple[Key, int]] = []
    for _ in range(count):
        if reader.short:
            break
        bits, wire, epoch = reader.unpack(_OFFERED)
        entries.append((_parse_key(reader, wires, wire, is_v6=bool(bits & _Says.V6.value)), epoch))
    return Offer(tuple(entries), bool(quiet), grace_ms / _MS)


def _pack_clients(key: Key, entries: tuple[Asker, ...]) -> bytes:
    head = bytes((_Says.V6.value if ":" in key.vip else 0,)) + pack_ip(key.vip) + pack_text(key.wire)
    packed = (
        pack_ip(asker.ip) + _CLIENT.pack(parse_mac(asker.mac) or NO_MAC, limit(round(asker.age_s), MOST_U16))
        for asker in entries
    )
    return b"".join((head, len(entries).to_bytes(2, "big"), *packed))


def _parse_clients(reader: Reader) -> Clients:
    is_v6 = bool(reader.number(1) & _Says.V6.value)
    key = Key(reader.ip(is_v6=is_v6), Channel(reader.text()))
    entries: list[Asker] = []
    for _ in range(reader.number(2)):
        if reader.short:
            break
        ip = reader.ip(is_v6=is_v6)
        mac, age_s = reader.take(len(NO_MAC)), reader.number(2)
        entries.append(Asker(ip, format_mac(mac) if mac != NO_MAC else "", age_s))
    return Clients(key, tuple(entries))


def _wires(keys: Iterable[Key]) -> tuple[Channel, ...]:
    return tuple(sorted({key.wire for key in keys}))


def _parse_answer(reader: Reader) -> Answer:
    return Answer(reader.number(8), NodeName(reader.text()))


_PARSERS: dict[int, Callable[[Reader], Body]] = {
    Type.BEAT: _parse_beat,
    Type.CLAIMS: _parse_claims,
    Type.WANT: lambda _reader: Want(),
    Type.OFFER: _parse_offer,
    Type.RELEASE: lambda reader: Release(Channel(reader.text())),
    Type.CHALLENGE: lambda reader: Challenge(reader.number(8)),
    Type.ANSWER: _parse_answer,
    Type.BYE: lambda _reader: Bye(),
    Type.CLIENTS: _parse_clients,
}
