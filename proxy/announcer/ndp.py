"""Neighbour discovery (RFC 4861) with the questions of address autoconfiguration (RFC 4862). No I/O.

All goes through AF_PACKET: no link-local address is needed that could be tentative, and what is asked of an address by
its own MAC (reachability, 7.3) is heard as well.
"""

import ipaddress
import struct
from enum import IntEnum
from typing import NamedTuple

from endpointslice.types import IP
from proxy.announcer.ethernet import Drop, EtherType, Frame, is_host_mac, pack_frame
from proxy.announcer.ipv6 import HOP_LIMIT, pack_icmpv6, parse_icmpv6
from proxy.announcer.sightings import Sighting
from proxy.l2.events import ArpKind

_NEIGHBOUR = struct.Struct("!BBHI16s")  # type code checksum flags target
_ROUTER, _SOLICITED, _OVERRIDE = 0x80000000, 0x40000000, 0x20000000
_SOURCE_OPTION, _TARGET_OPTION = 1, 2
_OPTION_UNIT = 8  # bytes
_OPTION = struct.Struct("!BB6s")
_ALL_NODES = ipaddress.IPv6Address("ff02::1").packed
_SOLICITED_NODE = ipaddress.IPv6Address("ff02::1:ff00:0").packed[:13]
_UNSPECIFIED = bytes(16)
_MULTICAST = 0xFF


class Type(IntEnum):
    """ICMPv6's two that are about addresses."""

    SOLICITATION = 135
    ADVERTISEMENT = 136


class Neighbour(NamedTuple):
    """A solicitation or an advertisement, valid by RFC 4861, 7.1."""

    type: Type
    source: bytes  # unspecified: the asker wants the address for itself (duplicate address detection)
    destination: bytes
    target: bytes
    mac: bytes  # the option's, else the frame's
    solicited: bool = False
    override: bool = False
    router: bool = False


def parse_ndp(frame: Frame) -> Neighbour | Drop:
    """The message, or why it is none that we look at."""
    packet = parse_icmpv6(frame.payload)
    if isinstance(packet, Drop):
        return packet
    if packet.body[0] not in (Type.SOLICITATION, Type.ADVERTISEMENT):
        return Drop.NOT_OURS
    if packet.hop_limit != HOP_LIMIT:
        return Drop.HOP_LIMIT
    if len(packet.body) < _NEIGHBOUR.size:
        return Drop.SHORT
    kind, code, _checksum, flags, target = _NEIGHBOUR.unpack_from(packet.body)
    if code != 0 or target[0] == _MULTICAST or target == _UNSPECIFIED:
        return Drop.BAD_TARGET
    type_ = Type(kind)
    mac = _read_option(packet.body[_NEIGHBOUR.size :], type_, frame.source)
    if isinstance(mac, Drop):
        return mac
    if not is_host_mac(mac) or packet.source[0] == _MULTICAST:
        return Drop.BAD_SENDER
    told = type_ is Type.ADVERTISEMENT
    return Neighbour(
        type_,
        packet.source,
        packet.destination,
        target,
        mac,
        solicited=told and bool(flags & _SOLICITED),
        override=told and bool(flags & _OVERRIDE),
        router=told and bool(flags & _ROUTER),
    )


def _read_option(options: bytes, kind: Type, default: bytes) -> bytes | Drop:
    """The link-layer address that the message is about; unknown options are skipped, one of no length voids all."""
    wanted = _SOURCE_OPTION if kind is Type.SOLICITATION else _TARGET_OPTION
    found = default
    while options:
        length = options[1] * _OPTION_UNIT if len(options) > 1 else 0
        if length == 0 or length > len(options):
            return Drop.BAD_OPTION
        if options[0] == wanted:
            found = options[2:8]
        options = options[length:]
    return found


def read_ndp(message: Neighbour) -> tuple[Sighting, ...]:
    """What it says of addresses; an advertisement to a group tells everybody."""
    group = message.destination[0] == _MULTICAST
    if message.type is Type.ADVERTISEMENT:
        kind = ArpKind.GRATUITOUS if group else ArpKind.REPLY
        return (Sighting(kind, _text(message.target), message.mac, group),)
    asked = Sighting(ArpKind.REQUEST, _text(message.target), message.mac, group)
    if message.source == _UNSPECIFIED:
        return (asked,)
    asked = asked._replace(asker=_text(message.source))
    kind = ArpKind.GRATUITOUS if group else ArpKind.REPLY
    return Sighting(kind, _text(message.source), message.mac, group), asked


def answer_ndp(question: Neighbour, mac: bytes) -> bytes:
    """The frame that answers with our MAC; O=1, as an answer without it never corrects a wrong entry (tried).

    Who asks for itself has no address to answer to: all nodes are told (RFC 4861, 7.2.4).
    """
    if question.source == _UNSPECIFIED:
        return _advertise(question.target, mac, _OVERRIDE)
    body = _body(Type.ADVERTISEMENT, _SOLICITED | _OVERRIDE, question.target, (_TARGET_OPTION, mac))
    packet = pack_icmpv6(question.target, question.source, body)
    return pack_frame(question.mac, mac, EtherType.IPV6, packet)


def announce_ndp(vip: IP, mac: bytes) -> bytes:
    """An unsolicited advertisement to all nodes, O=1."""
    return _advertise(_bytes(vip), mac, _OVERRIDE)


def tell_ndp(vip: IP, mac: bytes, *, client: IP, to: bytes) -> bytes:
    """The same for one client, to its own MAC."""
    body = _body(Type.ADVERTISEMENT, _OVERRIDE, _bytes(vip), (_TARGET_OPTION, mac))
    return pack_frame(to, mac, EtherType.IPV6, pack_icmpv6(_bytes(vip), _bytes(client), body))


def ask_ndp(target: IP, mac: bytes, *, own: IP, to: bytes | None = None) -> bytes:
    """The frame that asks who has the address; `to` None: everybody, by the solicited-node group."""
    address = _bytes(target)
    body = _body(Type.SOLICITATION, 0, address, (_SOURCE_OPTION, mac))
    group = solicited_node(address)
    destination = group if to is None else address
    return pack_frame(
        _group_mac(group) if to is None else to, mac, EtherType.IPV6, pack_icmpv6(_bytes(own), destination, body)
    )


def solicited_node(address: bytes) -> bytes:
    """The group that questions about the address go to (RFC 4291, 2.7.1)."""
    return _SOLICITED_NODE + address[13:]


def _advertise(target: bytes, mac: bytes, flags: int) -> bytes:
    body = _body(Type.ADVERTISEMENT, flags, target, (_TARGET_OPTION, mac))
    return pack_frame(_group_mac(_ALL_NODES), mac, EtherType.IPV6, pack_icmpv6(target, _ALL_NODES, body))


def _body(kind: Type, flags: int, target: bytes, option: tuple[int, bytes]) -> bytes:
    return _NEIGHBOUR.pack(kind, 0, 0, flags, target) + _OPTION.pack(option[0], 1, option[1])


def _group_mac(group: bytes) -> bytes:
    """RFC 2464, 7."""
    return b"\x33\x33" + group[12:]


def _text(address: bytes) -> IP:
    return IP(str(ipaddress.IPv6Address(address)))


def _bytes(address: IP) -> bytes:
    return ipaddress.IPv6Address(address).packed
