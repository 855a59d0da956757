"""What a client hears of addresses on its wire."""

from typing import NamedTuple

from endpointslice.types import IP
from proxy.announcer.arp import Arp, parse_arp, read_arp
from proxy.announcer.ethernet import Drop, EtherType, format_mac, parse_frame
from proxy.announcer.ndp import Neighbour, parse_ndp, read_ndp


class Heard(NamedTuple):
    """One statement."""

    kind: str  # of ArpKind
    vip: IP
    mac: str
    form: str  # request, reply or advertisement


def read_heard(data: bytes) -> list[Heard]:
    """All that a frame says."""
    frame = parse_frame(data)
    if isinstance(frame, Drop):
        return []
    if frame.kind == EtherType.ARP:
        arp = parse_arp(frame)
        if isinstance(arp, Arp):
            said = read_arp(arp, broadcast=frame.is_group)
            return [Heard(one.kind.value, one.ip, format_mac(one.mac), arp.operation.name.lower()) for one in said]
        return []
    neighbour = parse_ndp(frame)
    if isinstance(neighbour, Neighbour):
        form = neighbour.type.name.lower()
        return [Heard(one.kind.value, one.ip, format_mac(one.mac), form) for one in read_ndp(neighbour)]
    return []
