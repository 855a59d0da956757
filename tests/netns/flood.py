"""A program that sends UDP packets, each a flow of its own, as fast as it can, until it has sent as many.

    python -m tests.netns.flood DESTINATION PORT COUNT

The sources are those of 10.77.0.0/16, one after the other.
"""

import socket
import struct
import sys

_IPV4 = struct.Struct("!BBHHHBBH4s4s")
_UDP = struct.Struct("!HHHH")
_BURST = 256


def main(arguments: list[str]) -> None:
    """Send."""
    destination, port, count = socket.inet_aton(arguments[0]), int(arguments[1]), int(arguments[2])
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    udp = [_UDP.pack(source_port, port, 8, 0) for source_port in range(20_000, 20_000 + _BURST)]
    for burst in range(count // _BURST):
        source = struct.pack("!BBH", 10, 77, burst % 65536)
        header = _IPV4.pack(0x45, 0, 28, 0, 0, 64, socket.IPPROTO_UDP, 0, source, destination)  # the kernel sums it
        for datagram in udp:
            raw.sendto(header + datagram, (arguments[0], 0))


if __name__ == "__main__":
    main(sys.argv[1:])
