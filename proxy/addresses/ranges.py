"""Ranges of addresses as numbers: parsed, compared, counted. Counts are Python's integers: a /64 overflows nothing."""

import ipaddress
from collections.abc import Iterable, Iterator

from endpointslice.addresses import family_of, pack_ip, parse_cidr, parse_ip
from endpointslice.types import IP, Family
from proxy.addresses.types import Range

_BITS = {Family.IPV4: 32, Family.IPV6: 128}
_BLOCK = 256  # the addresses of one last octet
_BUGGY = (0, 255)  # last octets that some firmware takes for a network or a broadcast


def number_of(ip: IP) -> int:
    """The address as a number; its family is no part of it."""
    return int.from_bytes(pack_ip(ip), "big")


def address_of(family: Family, number: int) -> IP:
    """The address of a number, canonical."""
    return IP(str(ipaddress.IPv4Address(number) if family is Family.IPV4 else ipaddress.IPv6Address(number)))


def parse_range(text: str) -> Range | str:
    """The range of "192.0.2.0/24" or "192.0.2.10 - 192.0.2.20", or what is wrong with the text."""
    first_text, dash, last_text = (part.strip() for part in text.partition("-"))
    if not dash:
        return _parse_network(first_text)
    first, last = parse_ip(first_text), parse_ip(last_text)
    if first is None or last is None:
        return f'"{first_text if first is None else last_text}" is not an address'
    if family_of(first) is not family_of(last):
        return f'"{text}" begins in one family and ends in the other'
    found = Range(family_of(first), number_of(first), number_of(last))
    if found.first > found.last:
        return f'"{text}" ends before it begins; write it as {last}-{first}'
    return found


def _parse_network(text: str) -> Range | str:
    cidr = parse_cidr(text)
    if cidr is None:
        advice = f"; for one address write {text}/{_BITS[family_of(IP(text))]}" if parse_ip(text) else ""
        return f'"{text}" is neither a network nor a range such as 192.0.2.10-192.0.2.20{advice}'
    address, _slash, length = cidr.partition("/")
    first = number_of(IP(address))
    family = family_of(cidr)
    return Range(family, first, first + (1 << (_BITS[family] - int(length))) - 1)


def overlaps(one: Range, other: Range) -> bool:
    """Whether they have an address in common."""
    return one.family is other.family and one.first <= other.last and other.first <= one.last


def show_range(held: Range) -> str:
    """The text "first-last", or the address where there is one only."""
    first = address_of(held.family, held.first)
    return first if held.first == held.last else f"{first}-{address_of(held.family, held.last)}"


def is_buggy(family: Family, number: int) -> bool:
    """Whether avoidBuggyIPs leaves it out: IPv4 addresses that end in .0 or .255."""
    return family is Family.IPV4 and number % _BLOCK in _BUGGY


def count_addresses(ranges: Iterable[Range], family: Family, *, avoid_buggy: bool) -> int:
    """How many addresses can be given out."""
    return sum(_count(held, avoid_buggy=avoid_buggy) for held in ranges if held.family is family)


def _count(held: Range, *, avoid_buggy: bool) -> int:
    total = held.last - held.first + 1
    if not avoid_buggy or held.family is Family.IPV6:
        return total
    # how many numbers up to `last` leave the remainder, less those before `first`
    return total - sum((held.last - r) // _BLOCK - (held.first - 1 - r) // _BLOCK for r in _BUGGY)


def iter_from(ranges: Iterable[Range], family: Family, start: int) -> Iterator[int]:
    """The numbers of a family in the order of the ranges, leaving out as many as `start`."""
    left = start
    for held in ranges:
        if held.family is not family:
            continue
        size = held.last - held.first + 1
        if left < size:
            yield from range_of(held.first + left, held.last)
        left = max(0, left - size)


def range_of(first: int, last: int) -> Iterator[int]:
    """Numbers from the first to the last; `range` can't be longer than a C integer in every use of it."""
    number = first
    while number <= last:
        yield number
        number += 1
