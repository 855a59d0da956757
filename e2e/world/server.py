"""The program of a pod: answers HTTP and datagrams with its own name and the source address that it sees.

    python -m e2e.world.server NAME tcp:8080 udp:53 ..

Prints "ready" once every port is bound, then serves until killed, all from one thread. Only the standard library, and
little of it: a world starts dozens of these at once, each under `python -I -S`.
"""

import contextlib
import json
import resource
import select
import socket
import sys

_BACKLOG = 4096
_BUFFER_BYTES = 8 << 20  # room for a burst of datagrams while other processes have the CPU
_LONGEST_REQUEST = 65536
_END_OF_HEAD = b"\r\n\r\n"


def main(argv: list[str]) -> int:
    """Serve; 2 if the arguments make no sense."""
    if len(argv) < 2:
        print(f"usage: {sys.argv[0]} NAME PROTOCOL:PORT..", file=sys.stderr)
        return 2
    name, *ports = argv
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server = Server(name)
    for port in ports:
        protocol, _, number = port.partition(":")
        server.listen(protocol, int(number))
    print("ready", flush=True)
    server.run()
    return 0


class Server:
    """The sockets of one pod."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._poll = select.epoll()
        self._listeners: dict[int, socket.socket] = {}
        self._datagrams: dict[int, socket.socket] = {}
        self._connections: dict[int, tuple[socket.socket, str, bytes]] = {}  # socket, peer, what was read so far

    def listen(self, protocol: str, port: int) -> None:
        """Bind one port for both families. OSError if it is taken, ValueError for another protocol."""
        if protocol not in {"tcp", "udp"}:
            raise ValueError(f"{protocol!r} is neither tcp nor udp")
        kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
        sock = socket.socket(socket.AF_INET6, kind)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.settimeout(0.0)
        if protocol == "udp":
            with contextlib.suppress(PermissionError):  # in a pod: then the kernel's usual room must do
                sock.setsockopt(socket.SOL_SOCKET, 33, _BUFFER_BYTES)  # SO_RCVBUFFORCE, which the module doesn't name
        sock.bind(("::", port))
        if protocol == "tcp":
            sock.listen(_BACKLOG)
        (self._listeners if protocol == "tcp" else self._datagrams)[sock.fileno()] = sock
        self._poll.register(sock, select.EPOLLIN)

    def run(self) -> None:
        """Serve for ever."""
        while True:
            for fileno, _ in self._poll.poll():
                if fileno in self._listeners:
                    self._accept_all(self._listeners[fileno])
                elif fileno in self._datagrams:
                    self._answer_datagrams(self._datagrams[fileno])
                else:
                    self._read(fileno)

    def _accept_all(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, peer = listener.accept()
            except BlockingIOError:
                return
            except ConnectionError:
                continue
            sock.settimeout(0.0)
            fileno = sock.fileno()
            self._connections[fileno] = (sock, _plain(peer[0]), b"")
            self._poll.register(fileno, select.EPOLLIN)

    def _answer_datagrams(self, sock: socket.socket) -> None:
        while True:
            try:
                _, peer = sock.recvfrom(_LONGEST_REQUEST)
                sock.sendto(self._answer(_plain(peer[0])), peer)
            except BlockingIOError:
                return
            except OSError:  # an ICMP error of an earlier answer; the next datagram matters
                continue

    def _read(self, fileno: int) -> None:
        """Answer every whole request that has arrived; a client that wants to may ask again on the connection."""
        sock, peer, head = self._connections[fileno]
        try:
            data = sock.recv(_LONGEST_REQUEST)
            head += data
            while (end := head.find(_END_OF_HEAD)) >= 0:
                last = b"connection: close" in head[:end].lower()
                sock.sendall(self._response(peer, last=last))
                head = b"" if last else head[end + len(_END_OF_HEAD) :]
                data = b"" if last else data
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data and len(head) < _LONGEST_REQUEST:
            self._connections[fileno] = (sock, peer, head)
        else:
            del self._connections[fileno]
            sock.close()

    def _response(self, peer: str, *, last: bool) -> bytes:
        body = self._answer(peer)
        keep = b"close" if last else b"keep-alive"
        return (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\nConnection: %b\r\n\r\n%b" % (len(body), keep, body)
        )

    def _answer(self, peer: str) -> bytes:
        return json.dumps({"name": self._name, "source": peer}).encode() + b"\n"


def _plain(address: str) -> str:
    """An IPv4 peer of a dual-stack socket as IPv4."""
    return address.removeprefix("::ffff:") if "." in address else address


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
