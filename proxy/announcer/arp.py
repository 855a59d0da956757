"""ARP for IPv4 on Ethernet (RFC 826), with the probes and announcements of RFC 5227. No I/O."""

import ipaddress
import struct
from enum import IntEnum
from typing import NamedTuple

from endpointslice.types import IP
from proxy.announcer.ethernet import BROADCAST, NO_MAC, Drop, EtherType, Frame, is_host_mac, pack_frame
from proxy.announcer.sightings import Sighting
from proxy.l2.events import ArpKind

_ARP = struct.Struct("!HHBBH6s4s6s4s")  # hardware, protocol, their lengths, operation, two pairs; 28 bytes
_ETHERNET_IPV4 = (1, EtherType.IPV4, 6, 4)
_NO_IP = bytes(4)


class Operation(IntEnum):
    """RFC 826's two; others (reverse ARP) are none of ours."""

    REQUEST = 1
    REPLY = 2


class Arp(NamedTuple):
    """A packet. The sender's pair says whose MAC an address has; the target's, what is asked for or who is told."""

    operation: Operation
    sender_mac: bytes
    sender_ip: bytes  # zeros in a probe: the sender doesn't have it yet
    target_mac: bytes
    target_ip: bytes


def parse_arp(frame: Frame) -> Arp | Drop:
    """The packet, or why it is none that we look at."""
    if len(frame.payload) < _ARP.size:
        return Drop.SHORT
    *kind, operation, sender_mac, sender_ip, target_mac, target_ip = _ARP.unpack_from(frame.payload)
    if tuple(kind) != _ETHERNET_IPV4:
        return Drop.NOT_ETHERNET_IPV4
    if operation not in (Operation.REQUEST, Operation.REPLY):
        return Drop.BAD_OPERATION
    if not is_host_mac(sender_mac):
        return Drop.BAD_SENDER
    return Arp(Operation(operation), sender_mac, sender_ip, target_mac, target_ip)


def pack_arp(packet: Arp) -> bytes:
    """What follows the Ethernet header."""
    return _ARP.pack(*_ETHERNET_IPV4, *packet)


def read_arp(packet: Arp, *, broadcast: bool) -> tuple[Sighting, ...]:
    """What it says of addresses.

    A request with the sender's own address is gratuitous in either form; so is every broadcast that names a sender,
    since caches that know the address take it in (Linux 6.18, tried).
    """
    said: list[Sighting] = []
    if packet.sender_ip != _NO_IP:
        told = packet.sender_ip == packet.target_ip or broadcast
        kind = ArpKind.GRATUITOUS if told else ArpKind.REPLY
        said.append(Sighting(kind, _text(packet.sender_ip), packet.sender_mac, broadcast))
    if packet.operation is Operation.REQUEST and packet.sender_ip != packet.target_ip:
        asker = _text(packet.sender_ip) if packet.sender_ip != _NO_IP else None
        said.append(Sighting(ArpKind.REQUEST, _text(packet.target_ip), packet.sender_mac, broadcast, asker))
    return tuple(said)


def answer_arp(request: Arp, mac: bytes) -> bytes:
    """The frame that answers a request or a probe with our MAC, to the asker alone."""
    packet = Arp(Operation.REPLY, mac, request.target_ip, request.sender_mac, request.sender_ip)
    return pack_frame(request.sender_mac, mac, EtherType.ARP, pack_arp(packet))


def announce_arp(vip: IP, mac: bytes, *, both: bool) -> tuple[bytes, ...]:
    """Gratuitous broadcast frames: the request form, and with `both` the reply form.

    The reply's target MAC is the sender's: with ff:ff.. Linux doesn't take it for gratuitous, and drops it within the
    second after a change (6.18, tried).
    """
    address = _bytes(vip)
    forms = [Arp(Operation.REQUEST, mac, address, NO_MAC, address)]
    if both:
        forms.append(Arp(Operation.REPLY, mac, address, mac, address))
    return tuple(pack_frame(BROADCAST, mac, EtherType.ARP, pack_arp(form)) for form in forms)


def ask_arp(target: IP, mac: bytes, *, own: IP | None, to: bytes = BROADCAST) -> bytes:
    """The frame that asks who has the address; `own` None: a probe, which changes nobody's cache (RFC 5227)."""
    sender_ip = _bytes(own) if own is not None else _NO_IP
    packet = Arp(Operation.REQUEST, mac, sender_ip, NO_MAC, _bytes(target))
    return pack_frame(to, mac, EtherType.ARP, pack_arp(packet))


def tell_arp(vip: IP, mac: bytes, *, client: IP, to: bytes) -> bytes:
    """The frame that tells one client, in the form of a question for it: its kernel updates the entry, or makes one.

    Linux does so also within a second of a change, where it ignores answers that it didn't ask for (6.18, tried).
    """
    packet = Arp(Operation.REQUEST, mac, _bytes(vip), NO_MAC, _bytes(client))
    return pack_frame(to, mac, EtherType.ARP, pack_arp(packet))


def _text(address: bytes) -> IP:
    return IP(str(ipaddress.IPv4Address(address)))


def _bytes(address: IP) -> bytes:
    return ipaddress.IPv4Address(address).packed
