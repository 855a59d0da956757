"""The program that is every endpoint of a namespace: it says which of its addresses was reached, and whom it saw.

    server.py tcp:8080 udp:8080 ..

Prints "ready" once all ports are bound. A connection is answered at once with a line "ADDRESS PORT SOURCE" and closed,
and so is each datagram, from the address that it was sent to. Only the standard library.
"""

import ipaddress
import resource
import select
import socket
import struct
import sys

_BACKLOG = 4096
_BUFFER_BYTES = 4 << 20
_SO_RCVBUFFORCE = 33
_IPV6_RECVPKTINFO = 49
_IPV6_PKTINFO = 50
_IPV6_FREEBIND = 78  # answer from addresses that are ours by a route alone
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def main(argv: list[str]) -> int:
    """Serve until killed."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    poll = select.epoll()
    sockets: dict[int, tuple[socket.socket, int]] = {}
    for text in argv:
        protocol, _, number = text.partition(":")
        sock = listen(protocol, int(number))
        sockets[sock.fileno()] = (sock, int(number))
        poll.register(sock, select.EPOLLIN)
    print("ready", flush=True)
    while True:
        for fileno, _ in poll.poll():
            sock, port = sockets[fileno]
            if sock.type == socket.SOCK_STREAM:
                accept_all(sock, port)
            else:
                answer_datagrams(sock, port)


def listen(protocol: str, port: int) -> socket.socket:
    """A socket of both families on every address."""
    sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.settimeout(0.0)
    if protocol == "udp":
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVPKTINFO, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_FREEBIND, 1)
    sock.bind(("::", port))
    if protocol == "tcp":
        sock.listen(_BACKLOG)
    return sock


def accept_all(listener: socket.socket, port: int) -> None:
    """Answer what waits."""
    while True:
        try:
            sock, peer = listener.accept()
        except BlockingIOError:
            return
        except OSError:  # it was reset while it waited
            continue
        with sock:
            try:
                sock.send(say(sock.getsockname()[0], port, peer[0]))
            except OSError:
                continue


def answer_datagrams(sock: socket.socket, port: int) -> None:
    """Answer what waits."""
    while True:
        try:
            _, control, _, peer = sock.recvmsg(64, 64)
            at = next(data[:16] for _, kind, data in control if kind == _IPV6_PKTINFO)
            reply = say(str(ipaddress.IPv6Address(at)), port, peer[0])
            sock.sendmsg([reply], [(socket.IPPROTO_IPV6, _IPV6_PKTINFO, at + bytes(4))], 0, peer)
        except BlockingIOError:
            return
        except OSError:  # an ICMP error of an earlier answer
            continue


def say(address: str, port: int, source: str) -> bytes:
    """The answer."""
    return f"{plain(address)} {port} {plain(source)}\n".encode()


def plain(address: str) -> str:
    """An address of IPv4 that an IPv6 socket names, as IPv4."""
    mapped = ipaddress.IPv6Address(address.partition("%")[0])
    return str(mapped.ipv4_mapped or mapped)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
