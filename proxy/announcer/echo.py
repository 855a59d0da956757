"""ICMP echo to a wire's gateway, from an address that needn't be the kernel's (RFC 792, RFC 4443). No I/O.

The gateway answers to the MAC that it believes has the address: so an owner learns whether it was replaced (rule 7).
"""

import ipaddress
import struct
from enum import IntEnum
from typing import NamedTuple

from endpointslice.types import IP
from proxy.announcer.ethernet import Drop, EtherType, Frame, pack_frame
from proxy.announcer.ipv6 import checksum, pack_icmpv6, parse_icmpv6

_IPV4 = struct.Struct("!BBHHHBBH4s4s")
_ECHO = struct.Struct("!BBHHH")  # type code checksum identifier sequence
_ICMP = 1
_TTL = 64
_DONT_FRAGMENT = 0x4000
_FRAGMENT = 0x3FFF
_VERSION_4 = 4
_WORD = 4  # bytes; the unit of a header's length


class Type(IntEnum):
    """Of both ICMPs."""

    REPLY = 0
    REQUEST = 8
    REQUEST_V6 = 128
    REPLY_V6 = 129


class Echo(NamedTuple):
    """A reply, or what to ask: `source` asks `destination`, and is told in a reply's `destination`."""

    source: IP
    destination: IP
    identifier: int
    sequence: int


class Macs(NamedTuple):
    """Who sends a frame to whom."""

    own: bytes
    to: bytes


def pack_request(echo: Echo, macs: Macs) -> bytes:
    """The frame; both addresses of one family."""
    source, destination = ipaddress.ip_address(echo.source), ipaddress.ip_address(echo.destination)
    if source.version == _VERSION_4:
        body = _ECHO.pack(Type.REQUEST, 0, 0, echo.identifier, echo.sequence)
        body = body[:2] + checksum(body).to_bytes(2, "big") + body[4:]
        packet = _pack_ipv4(source.packed, destination.packed, body)
        return pack_frame(macs.to, macs.own, EtherType.IPV4, packet)
    body = _ECHO.pack(Type.REQUEST_V6, 0, 0, echo.identifier, echo.sequence)
    return pack_frame(macs.to, macs.own, EtherType.IPV6, pack_icmpv6(source.packed, destination.packed, body, _TTL))


def parse_reply(frame: Frame) -> Echo | Drop:
    """The reply, or why it is none."""
    if frame.kind == EtherType.IPV6:
        packet = parse_icmpv6(frame.payload)
        if isinstance(packet, Drop):
            return packet
        return _read(packet.body, Type.REPLY_V6, packet.source, packet.destination)
    return _parse_ipv4(frame.payload)


def _parse_ipv4(payload: bytes) -> Echo | Drop:
    if len(payload) < _IPV4.size:
        return Drop.SHORT
    first, _tos, length, _id, fragment, _ttl, protocol, _sum, source, destination = _IPV4.unpack_from(payload)
    header = (first & 0xF) * _WORD
    if first >> 4 != _VERSION_4 or protocol != _ICMP:
        return Drop.NOT_OURS
    if fragment & _FRAGMENT:
        return Drop.FRAGMENT
    if header < _IPV4.size or length < header or len(payload) < length:
        return Drop.SHORT
    body = payload[header:length]
    if checksum(payload[:header]) != 0 or checksum(body) != 0:
        return Drop.CHECKSUM
    return _read(body, Type.REPLY, source, destination)


def _read(body: bytes, wanted: Type, source: bytes, destination: bytes) -> Echo | Drop:
    if len(body) < _ECHO.size:
        return Drop.SHORT
    kind, code, _checksum, identifier, sequence = _ECHO.unpack_from(body)
    if kind != wanted or code != 0:
        return Drop.NOT_OURS
    return Echo(_text(source), _text(destination), identifier, sequence)


def _pack_ipv4(source: bytes, destination: bytes, body: bytes) -> bytes:
    length = _IPV4.size + len(body)
    header = _IPV4.pack(0x45, 0, length, 0, _DONT_FRAGMENT, _TTL, _ICMP, 0, source, destination)
    return header[:10] + checksum(header).to_bytes(2, "big") + header[12:] + body


def _text(address: bytes) -> IP:
    return IP(str(ipaddress.ip_address(address)))
