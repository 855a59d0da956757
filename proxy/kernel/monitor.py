"""EFFECT. Tells when someone else changed our tables."""

import ctypes
import errno
import os
import select
import socket
import struct
import time
from collections.abc import Collection, Iterable
from enum import StrEnum

from endpointslice.types import Family
from proxy.kernel.attributes import iter_attributes, parse_name
from proxy.kernel.batch import FAMILY_NUMBERS, Reply, Type, iter_replies
from proxy.kernel.change import KernelError
from proxy.kernel.connection import SOL_NETLINK, explain_errno, open_socket
from proxy.kernel.ruleset import TABLE

_ADD_MEMBERSHIP = 1  # NETLINK_ADD_MEMBERSHIP
_GROUP_NFTABLES = 7  # NFNLGRP_NFTABLES
_SO_ATTACH_FILTER = 26
_RECEIVE_BYTES = 8 << 20
_BUFFER_BYTES = 1 << 18
_TABLE = 1  # the table's name is attribute 1 of every nf_tables message but NEWGEN
_PORT_ID_OFFSET = 12  # nlmsghdr.nlmsg_pid


class Seen(StrEnum):
    """What a wait brought."""

    NOTHING = "nothing"
    OURS_CHANGED = "ours-changed"
    UNKNOWN = "unknown"  # notifications were lost: read back


class Monitor:
    """A socket that hears of every transaction but our own; one thread waits on it.

    Open it before the tables are read: a change between the two is then reported.
    """

    def __init__(self, port_id: int, families: Collection[Family] = (Family.IPV4, Family.IPV6)) -> None:
        self._families = frozenset(families)
        self._socket = open_socket(_RECEIVE_BYTES)
        self._buffer = bytearray(_BUFFER_BYTES)
        try:
            _ignore_port(self._socket, port_id)
            self._socket.setsockopt(SOL_NETLINK, _ADD_MEMBERSHIP, _GROUP_NFTABLES)
        except OSError as error:  # without CAP_NET_ADMIN this is the first thing that the kernel refuses
            self.close()
            raise KernelError(f"nftables monitor: {explain_errno(error.errno or 0)}") from error

    def fileno(self) -> int:
        """For select() and the like."""
        return self._socket.fileno()

    def wait(self, timeout_s: float | None) -> Seen:
        """What others did since the last call, waiting at most `timeout_s` seconds for something (None: for ever)."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._socket], [], [], left_s)[0]:
                return Seen.NOTHING
            seen = self._drain()
            if seen is not Seen.NOTHING:
                return seen

    def close(self) -> None:
        """Close the socket; a wait in another thread may not notice: give it a time-out."""
        self._socket.close()

    def _drain(self) -> Seen:
        """Read all that has come, which may be of others' tables only."""
        seen = Seen.NOTHING
        while True:
            try:
                size = self._socket.recv_into(self._buffer, 0, socket.MSG_DONTWAIT | socket.MSG_TRUNC)
            except BlockingIOError:
                return seen
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise KernelError(f"nftables monitor: {os.strerror(error.errno or 0)}", unknown=True) from error
                seen = Seen.UNKNOWN
                continue
            if size > _BUFFER_BYTES:
                seen = Seen.UNKNOWN
            elif seen is Seen.NOTHING and touches(iter_replies(bytes(self._buffer[:size])), self._families):
                seen = Seen.OURS_CHANGED


def touches(notifications: Iterable[Reply], families: Collection[Family]) -> bool:
    """Whether one of them is about our table in one of these families. Pure."""
    numbers = {FAMILY_NUMBERS[family] for family in families}
    return any(
        notification.family in numbers
        and notification.kind != Type.NEWGEN
        and any(
            kind == _TABLE and parse_name(notification.payload[first:last]) == TABLE
            for kind, first, last in iter_attributes(notification.payload)
        )
        for notification in notifications
    )


def _ignore_port(sock: socket.socket, port_id: int) -> None:
    """Drop in the kernel what this port sent: our own 60,000 elements would come back at us.

    Classic BPF loads in network order what netlink wrote in the host's, hence the swapped number.
    """
    swapped = int.from_bytes(struct.pack("=I", port_id))
    program = b"".join(
        struct.pack("=HBBI", *instruction)
        for instruction in (
            (0x20, 0, 0, _PORT_ID_OFFSET),  # ld [12]
            (0x15, 0, 1, swapped),  # jeq #port_id, next, skip one
            (0x06, 0, 0, 0),  # ret #0: drop
            (0x06, 0, 0, 0xFFFFFFFF),  # ret #-1: keep whole
        )
    )
    code = ctypes.create_string_buffer(program, len(program))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", len(program) // 8, ctypes.addressof(code)))
