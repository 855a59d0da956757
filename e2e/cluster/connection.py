"""EFFECT: one long TCP connection of a client, to see that what happens meanwhile doesn't break it."""

import socket

from e2e.world.clients import Target
from e2e.world.hosts import Host
from e2e.world.netns import run_in

_REQUEST = b"GET / HTTP/1.1\r\nHost: world\r\n\r\n"
_TIMEOUT_S = 30.0


def connect(client: Host, target: Target) -> socket.socket:
    """A connection from the client's namespace, where the socket stays."""
    return run_in(client.netns, lambda: socket.create_connection((target.ip, target.port), _TIMEOUT_S))


def ask(connection: socket.socket) -> bytes:
    """The server's answer, head and line: the same bytes as long as it is the same server. OSError if none comes."""
    connection.sendall(_REQUEST)
    answer = b""
    while not answer.endswith(b"}\n"):
        part = connection.recv(4096)
        if not part:
            raise ConnectionResetError("the server closed the connection")
        answer += part
    return answer
