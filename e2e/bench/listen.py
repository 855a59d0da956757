"""The program that says when the kernel had a change: it hears every nftables notification of its namespace.

Each line on stdin is an IPv4 address; the answer is one line with the monotonic time, CLOCK_MONOTONIC, of the first
notification after that names it: as four bytes (an element's data) or as text before a slash (a chain of kube-proxy's,
named after its endpoint). Prints "ready" first. Only the standard library.
"""

import errno
import os
import select
import socket
import sys
import time

_NETLINK_NETFILTER = 12
_SOL_NETLINK = 270
_ADD_MEMBERSHIP = 1
_GROUP_NFTABLES = 7
_SO_RCVBUFFORCE = 33
_BUFFER_BYTES = 256 << 20  # kube-proxy's first sync is hundreds of thousands of notifications
_MESSAGE_BYTES = 1 << 18


def main() -> int:
    """Serve until stdin ends."""
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
    sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
    sock.bind((0, 0))
    sock.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, _GROUP_NFTABLES)
    print("ready", flush=True)
    wanted: list[tuple[bytes, bytes]] = []
    while True:
        readable, _, _ = select.select([0, sock.fileno()], [], [])
        now = time.monotonic()
        if 0 in readable:
            lines = os.read(0, 4096)
            if not lines:
                return 0
            _drain(sock, [])  # what was before the question is no answer
            wanted += [(socket.inet_aton(line.decode()), line + b"/") for line in lines.split()]
            print("asked", flush=True)
        elif _drain(sock, wanted):
            wanted.clear()
            print(now, flush=True)


def _drain(sock: socket.socket, wanted: list[tuple[bytes, bytes]]) -> bool:
    """Read all that has come; whether one of the wanted was in it."""
    found = False
    while True:
        try:
            data = sock.recv(_MESSAGE_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return found
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            continue
        found = found or any(raw in data or text in data for raw, text in wanted)


if __name__ == "__main__":
    sys.exit(main())
