"""Elements as a dump lists them, back to keys and data. Pure; unknown attributes are skipped, and nothing here raises.

A message of a dump (Linux 6.18) holds 100 to 400 elements. Elements of one size and shape, which is every endpoints map
and every plain set, are cut by one struct whose layout is learned from the first of them.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from proxy.kernel.attributes import iter_attributes, parse_attributes, parse_name, parse_number
from proxy.kernel.elements import (
    DATA,
    EXPRESSION,
    FLAGS,
    INTERVAL_END,
    KEY,
    LIST_ELEMENT,
    LIST_ELEMENTS,
    VALUE,
    VERDICT,
    VERDICT_CHAIN,
    VERDICT_CODE,
    VERDICT_CODES,
)
from proxy.kernel.ruleset import LAYOUTS, Data, SetId, address_bytes

_VERDICT_WORDS = {code: word for word, code in VERDICT_CODES.items()}
_EXPRESSION_NAME, _EXPRESSION_DATA = 1, 2
_COUNTER_PACKETS = 2  # NFTA_COUNTER_PACKETS


class Element(NamedTuple):
    """One element of the kernel's; a range is two of them."""

    key: bytes
    data: bytes
    end: bool  # ends a range
    packets: int


class _Shape(NamedTuple):
    cut: struct.Struct
    constant: tuple[bytes, bytes, bytes]  # around key and data


def unpack_elements(set_id: SetId, payloads: Iterable[bytes]) -> dict[bytes, bytes] | None:
    """Key to data of all elements that NEWSETELEM payloads hold; None: some are of a kind that we never write."""
    layout = LAYOUTS[set_id.name]
    if layout.interval:
        return _pair_ranges(address_bytes(set_id.family), iter_elements(payloads))
    if layout.data is not Data.VERDICT:
        return _unpack_fixed(payloads)
    found: dict[bytes, bytes] = {}
    for element in iter_elements(payloads):
        found[element.key] = element.data
    return None if b"" in found else found


def unpack_counters(payloads: Iterable[bytes]) -> dict[bytes, int]:
    """Key to packets of all elements that NEWSETELEM or DELSETELEM payloads hold."""
    return {element.key: element.packets for element in iter_elements(payloads)}


def iter_elements(payloads: Iterable[bytes]) -> Iterator[Element]:
    """Every element, attribute by attribute; one without a key (a catch-all) has b""."""
    verdicts: dict[bytes, bytes] = {}
    for payload in payloads:
        for first, last in _bodies(payload):
            for kind, start, end in iter_attributes(payload, first, last):
                if kind == LIST_ELEMENT:
                    yield _parse_element(payload[start:end], verdicts)


def _bodies(payload: bytes) -> Iterator[tuple[int, int]]:
    for kind, first, last in iter_attributes(payload):
        if kind == LIST_ELEMENTS:
            yield first, last


def _parse_element(element: bytes, verdicts: dict[bytes, bytes]) -> Element:
    found = parse_attributes(element)
    data = found.get(DATA, b"")
    if data not in verdicts:
        verdicts[data] = _parse_data(data)
        if len(verdicts) > 4096:  # noqa: PLR2004  # a map of endpoints has as many data as elements
            verdicts.clear()
            verdicts[data] = _parse_data(data)
    return Element(
        key=found[KEY][4:] if KEY in found else b"",
        data=verdicts[data],
        end=bool(parse_number(found.get(FLAGS, b"")) & INTERVAL_END),
        packets=_parse_packets(found[EXPRESSION]) if EXPRESSION in found else 0,
    )


def _parse_data(data: bytes) -> bytes:
    """An endpoint as it is, a verdict in words; a verdict that we don't know keeps its number."""
    found = parse_attributes(data)
    if VERDICT not in found:
        return found.get(VALUE, b"")
    verdict = parse_attributes(found[VERDICT])
    code = int.from_bytes(verdict.get(VERDICT_CODE, b""), signed=True)
    word = _VERDICT_WORDS.get(code, f"verdict {code}")
    return f"{word} {parse_name(verdict[VERDICT_CHAIN])}".encode() if VERDICT_CHAIN in verdict else word.encode()


def _parse_packets(expression: bytes) -> int:
    found = parse_attributes(expression)
    if found.get(_EXPRESSION_NAME) != b"counter\0":
        return 0
    return parse_number(parse_attributes(found.get(_EXPRESSION_DATA, b"")).get(_COUNTER_PACKETS, b""))


def _unpack_fixed(payloads: Iterable[bytes]) -> dict[bytes, bytes] | None:
    found: dict[bytes, bytes] = {}
    shape: _Shape | None = None
    for payload in payloads:
        for first, last in _bodies(payload):
            body = payload[first:last]
            shape = shape or _learn_shape(body)
            if shape is None or not _cut(body, shape, found):
                found.update((element.key, element.data) for element in iter_elements([payload]))
    return None if b"" in found else found


def _learn_shape(body: bytes) -> _Shape | None:
    """Where key and data stand in the first element, if all others are as long."""
    for _kind, first, last in iter_attributes(body):
        size = 4 + (last - first)
        places = {kind: (start, end) for kind, start, end in iter_attributes(body, first, last)}
        if KEY not in places:
            return None
        key = (places[KEY][0] + 4, places[KEY][1])
        data = (places[DATA][0] + 4, places[DATA][1]) if DATA in places else (size, size)
        if not key[1] <= data[0] <= data[1] <= size:
            return None
        cut = struct.Struct(
            f"{key[0]}s{key[1] - key[0]}s{data[0] - key[1]}s{data[1] - data[0]}s{size - data[1]}s",
        )
        before, _key, between, _data, after = cut.unpack_from(body)
        return _Shape(cut, (before, between, after))
    return None


def _cut(body: bytes, shape: _Shape, found: dict[bytes, bytes]) -> bool:
    """Whether every element of the body has the shape; their keys and data are added to `found` if so."""
    if len(body) % shape.cut.size:
        return False
    rows = list(shape.cut.iter_unpack(body))
    if any((before, between, after) != shape.constant for before, _key, between, _data, after in rows):
        return False
    found.update((key, data) for _before, key, _between, data, _after in rows)
    return True


def _pair_ranges(size: int, elements: Iterable[Element]) -> dict[bytes, bytes] | None:
    """Ranges as first + last address; an end without a start (nft puts one at zero) is nothing."""
    found: dict[bytes, bytes] = {}
    start: bytes | None = None
    for element in sorted(set(elements), key=lambda one: (one.key, not one.end)):
        if len(element.key) != size:
            return None
        if start is not None:
            found[start + (int.from_bytes(element.key) - 1).to_bytes(size)] = b""
        start = None if element.end else element.key
    if start is not None:
        found[start + b"\xff" * size] = b""
    return found
