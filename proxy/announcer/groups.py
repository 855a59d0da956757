"""EFFECT: the solicited-node groups that questions about our IPv6 addresses go to.

Joined by sockets, so that the interface takes them in and switches that snoop multicast hear of it. A socket holds only
so many groups as its memory allows, so another is opened when one is full.
"""

import errno
import ipaddress
import socket
import struct
from contextlib import suppress

from endpointslice.types import IP
from proxy.announcer.ndp import solicited_node

_MEMBERSHIP = struct.Struct("@16si")
_FULL = frozenset({errno.ENOBUFS, errno.ENOMEM})

Group = tuple[bytes, int]  # and the interface's index


class Groups:
    """Who is joined, counted: two addresses may have one group."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self._joined: dict[Group, socket.socket] = {}
        self._users: dict[Group, set[IP]] = {}

    def join(self, vip: IP, index: int) -> None:
        """Take in questions about the address on that interface; OSError if the kernel refuses."""
        group = (solicited_node(ipaddress.IPv6Address(vip).packed), index)
        self._users.setdefault(group, set()).add(vip)
        if group not in self._joined:
            self._joined[group] = self._enter(group)

    def leave(self, vip: IP, index: int) -> None:
        """No more; also where it never was joined, or the interface is gone."""
        group = (solicited_node(ipaddress.IPv6Address(vip).packed), index)
        users = self._users.get(group, set())
        users.discard(vip)
        if not users and group in self._joined:
            self._users.pop(group, None)
            with suppress(OSError):
                self._joined.pop(group).setsockopt(
                    socket.IPPROTO_IPV6, socket.IPV6_LEAVE_GROUP, _MEMBERSHIP.pack(*group)
                )

    def forget(self, index: int) -> None:
        """The interface is gone, and the kernel has left its groups by itself."""
        for group in [group for group in self._users if group[1] == index]:
            del self._users[group]
            self._joined.pop(group, None)

    def _enter(self, group: Group) -> socket.socket:
        for sock in self._sockets[-1:]:
            try:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, _MEMBERSHIP.pack(*group))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return sock
                if error.errno not in _FULL:
                    raise
            else:
                return sock
        self._sockets.append(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
        self._sockets[-1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, _MEMBERSHIP.pack(*group))
        return self._sockets[-1]
