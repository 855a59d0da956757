"""The program of a node that answers datagrams: each is sent back with the node's name put to its end.

    python echo.py NAME PORT

Prints "ready" once bound, serves both families until killed. Only the standard library.
"""

import socket
import sys


def main(argv: list[str]) -> int:
    """Serve; 2 if the arguments make no sense."""
    if len(argv) != 2:
        print(f"usage: {sys.argv[0]} NAME PORT", file=sys.stderr)
        return 2
    name = argv[0].encode()
    sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.bind(("::", int(argv[1])))
    print("ready", flush=True)
    while True:
        try:
            data, peer = sock.recvfrom(2048)
            sock.sendto(data + b" " + name, peer)
        except OSError:  # an ICMP error of an earlier answer, or no route while the link is down
            continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
