"""Ethernet frames as an AF_PACKET socket gives and takes them: no VLAN tag, no checksum at the end."""

import struct
from enum import IntEnum, StrEnum
from typing import NamedTuple

HEADER = struct.Struct("!6s6sH")
BROADCAST = b"\xff" * 6
NO_MAC = bytes(6)
_GROUP_BIT = 1


class EtherType(IntEnum):
    """What a frame carries."""

    IPV4 = 0x0800
    ARP = 0x0806
    IPV6 = 0x86DD


class Drop(StrEnum):
    """Why strangers' bytes are not looked at; stable codes."""

    SHORT = "short"
    NOT_OURS = "not-ours"  # of a kind that nobody asked for
    NOT_ETHERNET_IPV4 = "not-ethernet-ipv4"  # ARP for other hardware or another protocol
    BAD_OPERATION = "bad-operation"
    BAD_SENDER = "bad-sender"  # no hardware address that a host can have
    HOP_LIMIT = "hop-limit"  # not 255: it came through a router
    CHECKSUM = "checksum"
    BAD_TARGET = "bad-target"
    BAD_OPTION = "bad-option"
    FRAGMENT = "fragment"


class Frame(NamedTuple):
    """A frame taken apart."""

    destination: bytes
    source: bytes
    kind: int  # an EtherType, or a number that we don't know
    payload: bytes

    @property
    def is_group(self) -> bool:
        """Whether it goes to several hosts: broadcast or multicast."""
        return bool(self.destination[0] & _GROUP_BIT)


def parse_frame(data: bytes) -> Frame | Drop:
    """The frame, or Drop.SHORT."""
    if len(data) < HEADER.size:
        return Drop.SHORT
    destination, source, kind = HEADER.unpack_from(data)
    return Frame(destination, source, kind, data[HEADER.size :])


def pack_frame(destination: bytes, source: bytes, kind: EtherType, payload: bytes) -> bytes:
    """The frame's bytes; the driver pads what is short."""
    return HEADER.pack(destination, source, kind) + payload


def is_host_mac(mac: bytes) -> bool:
    """Whether one host can have it: neither all zeros nor a group."""
    return mac != NO_MAC and not mac[0] & _GROUP_BIT


def format_mac(mac: bytes) -> str:
    """As iproute2 writes it."""
    return mac.hex(":")


def parse_mac(text: str) -> bytes | None:
    """Six bytes; None if the text isn't such an address."""
    parts = text.split(":")
    if len(parts) != len(NO_MAC) or any(len(part) != len("ff") for part in parts):
        return None
    try:
        return bytes.fromhex("".join(parts))
    except ValueError:
        return None
