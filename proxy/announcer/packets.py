"""EFFECT: an AF_PACKET socket on one interface: frames in with the time at which the kernel had them, and frames out.

Needs CAP_NET_RAW.
"""

import ctypes
import socket
import struct
import time
from typing import NamedTuple

from proxy.announcer.packet_filter import LONGEST_FRAME, build_filter, count_instructions
from proxy.announcer.stamps import ANCILLARY_BYTES, SO_TIMESTAMPNS, read_age

_ETH_P_ALL = 3
_SO_ATTACH_FILTER = 26
_RECEIVE_BYTES = 1 << 20


class Captured(NamedTuple):
    """One frame as it came in."""

    data: bytes
    age_s: float  # since the kernel had it


class PacketSocket:
    """Frames of one interface, by the filter."""

    def __init__(self, interface: str, echo_id: int) -> None:
        """OSError if there is no such interface, or no right to it."""
        self.interface = interface
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # protocol 0: nothing before the filter
        try:
            _attach(self._socket, build_filter(echo_id))
            self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
            self._socket.setblocking(False)  # noqa: FBT003  # the method's own way
            self._socket.bind((interface, _ETH_P_ALL))
        except OSError:
            self._socket.close()
            raise

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def receive(self) -> Captured | None:
        """The next frame; None: there is none. A link that went down is told by netlink, not here."""
        try:
            data, ancillary, _flags, _sender = self._socket.recvmsg(LONGEST_FRAME, ANCILLARY_BYTES)
        except BlockingIOError:
            return None
        except OSError:  # ENETDOWN, once after the link went down: nothing else is lost
            return None
        # A jump of the wall clock makes a request too old, or fresh.
        return Captured(data, read_age(ancillary, time.time()))

    def send(self, frame: bytes) -> bool:
        """Whether the kernel took it; it doesn't while the link is down or its queue is full."""
        try:
            self._socket.send(frame)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """For good."""
        self._socket.close()


def _attach(sock: socket.socket, program: bytes) -> None:
    code = ctypes.create_string_buffer(program, len(program))
    descriptor = struct.pack("HL", count_instructions(program), ctypes.addressof(code))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, descriptor)
