"""Elements as a dump lists them, back to keys and data. Pure; unknown attributes are skipped, and nothing here raises.

A message of a dump (Linux 6.18) holds 100 to 400 elements. Elements of one size have one shape: it is learned from the
first of that size, and the next ones are cut by one struct. An element that differs from it in any other byte than its
key, data and counter is parsed attribute by attribute, as the first one was.
"""

import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from proxy.kernel.attributes import HEADER, iter_attributes, parse_attributes, parse_name, parse_number
from proxy.kernel.elements import (
    DATA,
    EXPRESSION,
    FLAGS,
    INTERVAL_END,
    KEY,
    KEY_END,
    LIST_ELEMENT,
    LIST_ELEMENTS,
    VALUE,
    VERDICT,
    VERDICT_CHAIN,
    VERDICT_CODE,
    VERDICT_CODES,
)
from proxy.kernel.ruleset import LAYOUTS, SetId, address_bytes, key_bytes

_VERDICT_WORDS = {code: word for word, code in VERDICT_CODES.items()}
_EXPRESSION_NAME, _EXPRESSION_DATA = 1, 2
_COUNTER_PACKETS = 2  # NFTA_COUNTER_PACKETS


class Element(NamedTuple):
    """One element of the kernel's; a range is two of them."""

    key: bytes  # b"" for one without a key (a catch-all)
    data: bytes
    end: bool  # ends a range
    counter: bytes  # attributes of its counter; b"" without one


class _Shape(NamedTuple):
    cut: struct.Struct  # around and between key, data and counter
    constant: tuple[bytes, bytes, bytes, bytes]
    plain: bool  # the data are a value, or none at all, not a verdict
    end: bool


class Unusable(Enum):
    """Why a dump says nothing about what a set holds."""

    # The kernel grows a hash table in the background, also long after the transaction. A dump across it lists some
    # elements twice and misses as many, and neither flag nor generation says so (Linux 6.18, tried: 1 of 20 dumps of
    # 280,000 elements just written). It goes by position and lists as many as there are, so none twice is none missed.
    REPEATED = "repeated"
    FOREIGN = "foreign"  # an element of a kind that we never write


def unpack_elements(set_id: SetId, payloads: Iterable[bytes]) -> dict[bytes, bytes] | Unusable:
    """Key to data of all elements that the NEWSETELEM payloads of one dump hold."""
    layout = LAYOUTS[set_id.name]
    if layout.interval and len(layout.key) > 1:
        return _parse_ranges(address_bytes(set_id.family), payloads)
    elements = list(iter_elements(payloads))
    if layout.interval:
        return pair_ranges(key_bytes(set_id), elements)
    found = {key: data for key, data, _end, _counter in elements}
    if b"" in found:
        return Unusable.FOREIGN
    return found if len(found) == len(elements) else Unusable.REPEATED


def unpack_counters(payloads: Iterable[bytes]) -> dict[bytes, int] | Unusable:
    """Key to packets of all elements that the payloads of one dump, or of echoes, hold; 0 for one without a counter."""
    elements = list(iter_elements(payloads))
    found = {key: parse_packets(counter) for key, _data, _end, counter in elements}
    return found if len(found) == len(elements) else Unusable.REPEATED


def iter_elements(payloads: Iterable[bytes]) -> Iterator[Element]:
    """Every element of NEWSETELEM or DELSETELEM payloads, in their order."""
    shapes: dict[int, _Shape] = {}
    verdicts: dict[bytes, bytes] = {}  # the kernel's form to ours; a map holds few different ones
    for payload in payloads:
        for kind, first, last in iter_attributes(payload):
            if kind == LIST_ELEMENTS:
                yield from _iter_body(payload[first:last], shapes, verdicts)


def _iter_body(body: bytes, shapes: dict[int, _Shape], verdicts: dict[bytes, bytes]) -> Iterator[Element]:
    for kind, first, last in iter_attributes(body):
        if kind != LIST_ELEMENT:
            continue
        shape = shapes.get(last - first)
        if shape is None:
            shape = _learn_shape(body[first:last])
            if shape is None:
                yield _parse_element(body[first:last])
                continue
            shapes[last - first] = shape
        before, key, between, data, middle, counter, after = shape.cut.unpack_from(body, first)
        if (before, between, middle, after) != shape.constant:
            yield _parse_element(body[first:last])
            continue
        if not shape.plain:
            if data not in verdicts:
                verdicts[data] = parse_data(data)
            data = verdicts[data]  # from the kernel's form to ours
        yield Element(key, data, shape.end, counter)


def _learn_shape(element: bytes) -> _Shape | None:
    """Where key, data and counter stand; None if not in this order, or without a key."""
    places = {kind: (first, last) for kind, first, last in iter_attributes(element)}
    if KEY not in places:
        return None
    size = len(element)
    key = (places[KEY][0] + HEADER.size, places[KEY][1])
    data = places.get(DATA, (key[1], key[1]))
    inner = [*iter_attributes(element, *data)]
    plain = [kind for kind, _first, _last in inner] in ([], [VALUE])
    if plain and inner:
        data = inner[0][1:]
    counter = _find_counter(element, *places[EXPRESSION]) if EXPRESSION in places else (data[1], data[1])
    cuts = [0, *key, *data, *counter, size]
    if cuts != sorted(cuts):
        return None
    cut = struct.Struct("".join(f"{last - first}s" for first, last in itertools.pairwise(cuts)))
    before, _key, between, _data, middle, _counter, after = cut.unpack(element)
    return _Shape(cut, (before, between, middle, after), plain, end=_is_end(element, *places.get(FLAGS, (0, 0))))


def _find_counter(element: bytes, first: int, last: int) -> tuple[int, int]:
    """Where the attributes of the counter stand; an empty place at the end if the expression is another one."""
    places = {kind: (start, end) for kind, start, end in iter_attributes(element, first, last)}
    start, end = places.get(_EXPRESSION_NAME, (0, 0))
    return places.get(_EXPRESSION_DATA, (last, last)) if element[start:end] == b"counter\0" else (last, last)


def _is_end(element: bytes, first: int, last: int) -> bool:
    return bool(parse_number(element[first:last]) & INTERVAL_END)


def _parse_element(element: bytes) -> Element:
    places = {kind: (first, last) for kind, first, last in iter_attributes(element)}
    key_first, key_last = places.get(KEY, (0, 0))
    first, last = places.get(DATA, (0, 0))
    counter = _find_counter(element, *places[EXPRESSION]) if EXPRESSION in places else (0, 0)
    return Element(
        key=element[key_first + HEADER.size : key_last],
        data=parse_data(element[first:last]),
        end=_is_end(element, *places.get(FLAGS, (0, 0))),
        counter=element[slice(*counter)],
    )


def parse_data(data: bytes) -> bytes:
    """An endpoint as it is, a verdict in words; a verdict that we don't know keeps its number."""
    found = parse_attributes(data)
    if VERDICT not in found:
        return found.get(VALUE, b"")
    verdict = parse_attributes(found[VERDICT])
    code = int.from_bytes(verdict.get(VERDICT_CODE, b""), signed=True)
    word = _VERDICT_WORDS.get(code, f"verdict {code}")
    return f"{word} {parse_name(verdict[VERDICT_CHAIN])}".encode() if VERDICT_CHAIN in verdict else word.encode()


def parse_packets(counter: bytes) -> int:
    """Packets that a counter's attributes hold; 0 for none."""
    return parse_number(parse_attributes(counter).get(_COUNTER_PACKETS, b""))


def pair_ranges(size: int, elements: Sequence[Element]) -> dict[bytes, bytes] | Unusable:
    """Ranges as first + last value; an end without a start (nft puts one at zero) is nothing."""
    found: dict[bytes, bytes] = {}
    start: bytes | None = None
    if len(set(elements)) != len(elements):
        return Unusable.REPEATED
    for element in sorted(elements, key=lambda one: (one.key, not one.end)):
        if len(element.key) != size:
            return Unusable.FOREIGN
        if start is not None and (after := int.from_bytes(element.key)):
            found[start + (after - 1).to_bytes(size)] = b""
        start = None if element.end else element.key
    if start is not None:
        found[start + b"\xff" * size] = b""
    return found


def _parse_ranges(size: int, payloads: Iterable[bytes]) -> dict[bytes, bytes] | Unusable:
    """Ranges behind other fields, each one element with its first and last key; ours end in both addresses."""
    found: list[bytes] = []
    for payload in payloads:
        body = parse_attributes(payload).get(LIST_ELEMENTS, b"")
        for _kind, start, end in iter_attributes(body):
            element = parse_attributes(body, start, end)
            first = element.get(KEY, b"")[HEADER.size :]
            last = element.get(KEY_END, element.get(KEY, b""))[HEADER.size :]
            if not first or first[:-size] != last[:-size]:
                return Unusable.FOREIGN
            found.append(first + last[-size:])
    return dict.fromkeys(found, b"") if len(set(found)) == len(found) else Unusable.REPEATED
