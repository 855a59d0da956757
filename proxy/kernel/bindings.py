"""Bindings of session affinity out of a table that goes, and into the one that takes its place. Pure.

Their time-out and what is left of it stand beside them (NFTA_SET_ELEM_TIMEOUT and _EXPIRATION; tried on Linux 6.18).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from endpointslice.types import Family
from proxy.kernel.affinities import affinity_map, parse_affinity
from proxy.kernel.attributes import HEADER, iter_attributes, parse_attributes, parse_number
from proxy.kernel.base import SET_TIMEOUT, Base, Named
from proxy.kernel.batch import Message
from proxy.kernel.change import Elements
from proxy.kernel.elements import DATA, KEY, LIST_ELEMENT, LIST_ELEMENTS, VALUE, pack_parts
from proxy.kernel.ruleset import address_bytes

MOST_IN_MAP = 65_535  # the room of a map that packets write (Linux 6.18)
_TIMEOUT, _EXPIRATION = 4, 5  # NFTA_SET_ELEM_*, milliseconds in 8 bytes
_TYPES = frozenset({4, 5, 6, 7})  # NFTA_SET_KEY_TYPE, KEY_LEN, DATA_TYPE, DATA_LEN
# Less than the kernel's tick (10 ms at most) would be taken for none given, and begin the whole time again.
_LEAST_MS = 100


class KeptMap(NamedTuple):
    """A map of bindings that both tables have, with the same types."""

    family: Family
    name: str
    old_ms: int  # the time-out of bindings that have none of their own
    new_ms: int


class Binding(NamedTuple):
    """Where a client's binding leads, and for how long."""

    target: bytes
    timeout_ms: int
    left_ms: int


def find_kept_maps(family: Family, found: Iterable[Named], affinities: Elements, base: Base) -> list[KeptMap]:
    """The maps of a table found that these affinities will have again, made with the same types of key and data."""
    wanted = {affinity_map(key): parse_affinity(data) for key, data in affinities.items()}
    kept = []
    for one in found:
        if one.name not in wanted:
            continue
        protocol, timeout_s = wanted[one.name]
        ours, theirs = parse_attributes(base.affinities[family][protocol]), parse_attributes(one.attributes)
        if all(ours.get(kind) == theirs.get(kind) for kind in _TYPES):
            kept.append(KeptMap(family, one.name, parse_number(theirs.get(SET_TIMEOUT, b"")), timeout_s * 1000))
    return kept


def iter_bindings(kept: KeptMap, payloads: Iterable[bytes]) -> Iterator[tuple[bytes, Binding]]:
    """Client and binding of the NEWSETELEM payloads of a dump, expired ones too; what isn't a binding is skipped."""
    key_size = address_bytes(kept.family)
    for payload in payloads:
        for kind, first, last in iter_attributes(payload):
            if kind != LIST_ELEMENTS:
                continue
            for _kind, start, end in iter_attributes(payload, first, last):
                found = parse_attributes(payload, start, end)
                client, target = found.get(KEY, b"")[HEADER.size :], found.get(DATA, b"")[HEADER.size :]
                if len(client) == key_size and len(target) == key_size + 4:
                    timeout_ms = parse_number(found.get(_TIMEOUT, b"")) or kept.old_ms
                    yield client, Binding(target, timeout_ms, parse_number(found.get(_EXPIRATION, b"")))


def choose_bindings(kept: KeptMap, found: Mapping[bytes, Binding]) -> dict[bytes, Binding]:
    """Those that have time left, with no more of it than the new map gives. One without an end isn't of our making."""
    chosen = {}
    for client, (target, timeout_ms, left_ms) in found.items():
        most_ms = min(timeout_ms or kept.new_ms, kept.new_ms)
        if left_ms >= _LEAST_MS:
            chosen[client] = Binding(target, most_ms, min(left_ms, most_ms))
    return chosen


def pack_bindings(kept: KeptMap, bindings: Mapping[bytes, Binding]) -> Iterator[Message]:
    """NEWSETELEM messages that add them to the new map."""
    key_size = address_bytes(kept.family)
    data_size = key_size + 4
    size = 4 + (8 + key_size) + (8 + data_size) + 12 + 12
    before = HEADER.pack(size, LIST_ELEMENT) + HEADER.pack(8 + key_size, KEY) + HEADER.pack(4 + key_size, VALUE)
    between = HEADER.pack(8 + data_size, DATA) + HEADER.pack(4 + data_size, VALUE)
    timeout, expiration = HEADER.pack(12, _TIMEOUT), HEADER.pack(12, _EXPIRATION)
    parts = [
        b"".join((before, client, between, target, timeout, most.to_bytes(8), expiration, left.to_bytes(8)))
        for client, (target, most, left) in bindings.items()
    ]
    yield from pack_parts(kept.family, kept.name, parts)
