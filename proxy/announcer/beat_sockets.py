"""EFFECT: the UDP sockets of messages: multicast on a wire, unicast on the node network and where one is meant.

Heartbeats and everything else have a port each: heartbeats are read when they are due, the rest wakes the process.
"""

import ipaddress
import socket
import struct
import time
from typing import NamedTuple

from endpointslice.types import IP
from proxy.announcer.datagram import LONGEST
from proxy.announcer.stamps import ANCILLARY_BYTES, SO_TIMESTAMPNS, read_age
from proxy.announcer.wires import WireLink

GROUP_V4, GROUP_V6 = "224.0.0.254", "ff02::114"  # RFC 3692's: flooded by every switch, and nobody's
_IP_MULTICAST_ALL = 49
_IPV6_MULTICAST_ALL = 29
_IP_PKTINFO = 8
_SO_BINDTODEVICE = socket.SO_BINDTODEVICE
_MREQN = struct.Struct("@4s4si")
_MREQ_V6 = struct.Struct("@16si")
_PKTINFO_V4 = struct.Struct("@i4s4s")
_PKTINFO_V6 = struct.Struct("@16si")
_NO_IP = bytes(4)


class Ports(NamedTuple):
    """Four in a row."""

    first: int

    @property
    def beats(self) -> int:
        """On wires."""
        return self.first

    @property
    def urgent(self) -> int:
        """On wires."""
        return self.first + 1

    @property
    def node_beats(self) -> int:
        """On the node network."""
        return self.first + 2

    @property
    def node_urgent(self) -> int:
        """On the node network."""
        return self.first + 3


class Arrived(NamedTuple):
    """One datagram."""

    data: bytes
    sender: IP
    age_s: float  # since the kernel had it, by the wall clock


class MessageSocket:
    """One port."""

    def __init__(self, sock: socket.socket, port: int) -> None:
        self._socket = sock
        self.port = port
        sock.setblocking(False)  # noqa: FBT003  # the method's own way

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def receive(self) -> Arrived | None:
        """The next datagram; None: there is none."""
        return next(iter(self.receive_all(1)), None)

    def receive_all(self, most: int) -> list[Arrived]:
        """The next datagrams, in their order; no more than so many."""
        found: list[Arrived] = []
        wall_s = time.time()
        try:
            while len(found) < most:
                data, ancillary, _flags, address = self._socket.recvmsg(LONGEST, ANCILLARY_BYTES)
                found.append(Arrived(data, _sender(address[0]), read_age(ancillary, wall_s)))
        except OSError:  # nothing there; or an ICMP error about what was sent: the rest is read next time
            pass
        return found

    def send(self, data: bytes, to: IP, link: WireLink | None = None) -> bool:
        """Whether the kernel took it; `link`: from our address on that wire, out of its interface."""
        target = (to, self.port, 0, link.number if link else 0) if ":" in to else (to, self.port)
        try:
            if link is None:
                self._socket.sendto(data, target)
            else:
                self._socket.sendmsg([data], [_packet_info(link)], 0, target)
        except OSError:  # no carrier, no route, a full queue: the next heartbeat comes soon
            return False
        return True

    def close(self) -> None:
        """For good."""
        self._socket.close()


def _sender(address: str) -> IP:
    """Without the interface that a link-local one has behind it."""
    return IP(address.partition("%")[0] if "%" in address else address)


def open_wire_socket(link: WireLink, port: int) -> MessageSocket:
    """On the link's interface alone, in the group of its family; OSError if the kernel refuses."""
    is_v6 = ":" in link.own
    sock = _open(is_v6=is_v6)
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_BINDTODEVICE, link.interface.encode() + b"\0")
        if is_v6:
            group = ipaddress.IPv6Address(GROUP_V6).packed
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, _MREQ_V6.pack(group, link.number))
            sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_MULTICAST_ALL, 0)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 1)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, link.number)
        else:
            member = _MREQN.pack(ipaddress.IPv4Address(GROUP_V4).packed, _NO_IP, link.number)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
            sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, _MREQN.pack(_NO_IP, _NO_IP, link.number))
        sock.bind(("", port))
    except OSError:
        sock.close()
        raise
    return MessageSocket(sock, port)


def open_node_socket(port: int, *, is_v6: bool) -> MessageSocket:
    """For unicast to any address of ours; OSError if the kernel refuses, as without IPv6."""
    sock = _open(is_v6=is_v6)
    try:
        sock.bind(("", port))
    except OSError:
        sock.close()
        raise
    return MessageSocket(sock, port)


def _open(*, is_v6: bool) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if is_v6 else socket.AF_INET, socket.SOCK_DGRAM)
    # A process that follows another on this node opens the same ports while that one still runs.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    if is_v6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return sock


def _packet_info(link: WireLink) -> tuple[int, int, bytes]:
    """Our address there as the source: an interface may be on several wires."""
    if ":" in link.own:
        own = ipaddress.IPv6Address(link.own).packed
        return socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, _PKTINFO_V6.pack(own, link.number)
    return socket.IPPROTO_IP, _IP_PKTINFO, _PKTINFO_V4.pack(link.number, ipaddress.IPv4Address(link.own).packed, _NO_IP)
