"""A message that is too long for a datagram, as several of which each stands alone."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

from msgspec.structs import replace

from proxy.announcer.bodies import MOST_MEMBERS
from proxy.announcer.layout import MOST_U16
from proxy.l2.messages import Beat, Body, Claims, ClaimState, Message, Offer
from proxy.l2.types import MASK, Key, key_hash

T = TypeVar("T")

MOST_BYTES = 1000  # of entries; with the header, names of wires and the signature a datagram stays below 1,200
_PART_BITS = 16
_CLAIM_BYTES, _OFFER_BYTES = 34, 10  # without the address
_V4_BYTES, _V6_BYTES = 4, 16


def split_message(message: Message) -> tuple[Message, ...]:
    """Its parts, in the order in which they go out; numbered anew, as receivers want rising numbers."""
    bodies = _split(message.body)
    if len(bodies) > MOST_U16:
        bodies = bodies[:MOST_U16]  # 1.9 million addresses
    first = message.header.seq << _PART_BITS
    return tuple(
        replace(message, header=replace(message.header, seq=(first + part) & MASK), body=body)
        for part, body in enumerate(bodies)
    )


def _split(body: Body | None) -> Sequence[Body | None]:
    match body:
        case Beat() if len(body.ages_s) > MOST_MEMBERS:
            return tuple(_split_beat(body))
        case Claims():
            return tuple(_split_claims(body))
        case Offer():
            parts = tuple(_cut(body.entries, lambda entry: _size(entry[0], _OFFER_BYTES)))
            return tuple(replace(body, entries=part) for part in parts)
        case _:
            return (body,)


def _split_beat(beat: Beat) -> Iterator[Beat]:
    """Each part is about members of its own stretch; they are as long, so that none is nearly empty."""
    members = sorted(beat.ages_s)
    count = -(-len(members) // MOST_MEMBERS)
    first = [members[len(members) * number // count] for number in range(count)]
    borders = (0, *first[1:], MASK + 1)
    for number, (low, high) in enumerate(pairwise(borders)):
        ages_s = {member: beat.ages_s[member] for member in members if low <= member < high}
        yield replace(beat, ages_s=ages_s, low=low, high=high, wires=beat.wires if number == 0 else frozenset())


def _split_claims(claims: Claims) -> Iterator[Claims]:
    """Each part is complete for its own stretch of hashes, so one that is lost takes nothing from others."""
    inside = sorted((entry for entry in claims.entries if _is_within(entry, claims)), key=_hash_of)
    outside = [entry for entry in claims.entries if not _is_within(entry, claims)]
    if outside or claims.low >= claims.high:
        yield from map(Claims, _cut(outside, _claim_size))
    if claims.low < claims.high:
        parts = tuple(_cut(inside, _claim_size))
        borders = (claims.low, *(_hash_of(part[0]) for part in parts[1:]), claims.high)
        yield from map(Claims, parts, borders[:-1], borders[1:])


def _is_within(entry: ClaimState, claims: Claims) -> bool:
    return claims.low <= _hash_of(entry) < claims.high


def _hash_of(entry: ClaimState) -> int:
    return key_hash(entry.key)


def _claim_size(entry: ClaimState) -> int:
    return _size(entry.key, _CLAIM_BYTES)


def _size(key: Key, fixed: int) -> int:
    return fixed + (_V6_BYTES if ":" in key.vip else _V4_BYTES)


def _cut(entries: Sequence[T], size: Callable[[T], int]) -> Iterator[tuple[T, ...]]:
    """Stretches of at most MOST_BYTES, in order; one empty stretch for none."""
    part: list[T] = []
    total = 0
    for entry in entries:
        total += size(entry)
        if part and total > MOST_BYTES:
            yield tuple(part)
            part, total = [], size(entry)
        part.append(entry)
    yield tuple(part)
