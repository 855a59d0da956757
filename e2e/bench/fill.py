"""The program of many UDP clients: sends one datagram from each of many source ports to each of some destinations.

    fill.py FLOWS IP PORT..

Each is a flow for connection tracking on the way. Prints how many were sent. Only the standard library.
"""

import socket
import sys

_FIRST_PORT = 1024


def main(argv: list[str]) -> int:
    """Send, and print how many."""
    flows, ip, ports = int(argv[0]), argv[1], [int(port) for port in argv[2:]]
    sent = 0
    for source in range(_FIRST_PORT, _FIRST_PORT + flows // len(ports)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            try:
                sock.bind(("", source))
            except OSError:  # somebody has it
                continue
            for port in ports:
                sock.sendto(b"x", (ip, port))
                sent += 1
    print(sent)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
