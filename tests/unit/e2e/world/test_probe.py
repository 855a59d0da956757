"""The client of a world, on loopback."""

import socket
import time

import pytest

from e2e.world.probe import Attempts, Target

FIRST = 20_000
TRIES = 5


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_each_attempt_has_the_next_source_port(protocol: str) -> None:
    """One that is drawn could be that of a SYN without an answer, whose connection-tracking entry lives for minutes."""
    with socket.socket(type=socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(60.0)
        ip, port = server.getsockname()
        attempts = Attempts([Target({"protocol": protocol, "ip": ip, "port": port, "timeout_s": 0.1})], FIRST)
        if protocol == "tcp":
            server.listen()
        seen = []
        for _ in range(TRIES):
            attempts.start(0)
            seen.append(_peer_port(server, attempts))
        while len(attempts):
            attempts.wait(time.monotonic() + 0.1)

    assert seen == sorted(set(seen))
    assert FIRST < seen[0] <= seen[-1] < FIRST + 1000, "some may be in use"


def test_time_in_which_the_client_stood_still_is_no_time_out() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(60.0)
        ip, port = server.getsockname()
        attempts = Attempts([Target({"protocol": "udp", "ip": ip, "port": port, "timeout_s": 0.5})], FIRST)
        attempts.start(0)
        _peer_port(server, attempts)
        time.sleep(1.0)
        attempts.wait(0.0)
        after_the_pause = len(attempts)
        while len(attempts):
            attempts.wait(time.monotonic() + 0.01)

    assert after_the_pause == 1
    assert [record[3] for record in attempts.records] == ["timed-out"]


def _peer_port(server: socket.socket, attempts: Attempts) -> int:
    """From where the attempt that was begun last reaches the server."""
    if server.type is socket.SOCK_STREAM:
        connection, (_ip, port) = server.accept()
        connection.close()
    else:
        attempts.wait(0.0)  # the question is sent once the socket may be written to
        _question, (_ip, port) = server.recvfrom(16)
    return int(port)
