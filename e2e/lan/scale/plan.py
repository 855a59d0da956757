"""Who is on the wire, and at which addresses. No I/O.

10.99.0.0/16   .0.1 the announcer that is measured, .0.2 and up the others, .15.254 the gateway, .16.0 and up the VIPs
"""

import ipaddress
from typing import NamedTuple

from endpointslice.types import IP, NodeName
from proxy.l2.types import Channel

WIRE = Channel("10.99.0.0/16")
PREFIX_LENGTH = 16
MOST_MEMBERS = 250
MOST_VIPS = 20_000
GATEWAY = IP("10.99.15.254")
CROWD_MAC = "02:00:00:00:99:01"
KEY = b"a key of the benchmark's, which is no secret"
FIRST_PORT = 7477
_FIRST = ipaddress.IPv4Address("10.99.0.1")
_FIRST_VIP = ipaddress.IPv4Address("10.99.16.0")


class Peer(NamedTuple):
    """A member: its Node's name and its address on the wire."""

    node: NodeName
    address: IP


def plan_members(count: int) -> tuple[Peer, ...]:
    """The announcer that is measured, and the others."""
    return tuple(Peer(NodeName(f"node-{number + 1}"), IP(str(_FIRST + number))) for number in range(count))


def plan_vips(count: int) -> tuple[IP, ...]:
    """The first so many."""
    return tuple(IP(str(_FIRST_VIP + number)) for number in range(count))
