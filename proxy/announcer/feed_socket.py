"""EFFECT: frames out of a Unix socket: a length, and so many bytes."""

import socket

from proxy.announcer.feed_frames import LENGTH_BYTES, parse_length

_PIECE_BYTES = 1 << 16


def read_content(sock: socket.socket) -> bytes:
    """Of the next frame. EOFError if the peer ends before, BrokenFrameError if it is too long."""
    return _read(sock, parse_length(_read(sock, LENGTH_BYTES)))


def _read(sock: socket.socket, count: int) -> bytes:
    parts: list[bytes] = []
    while count:
        part = sock.recv(min(count, _PIECE_BYTES))
        if not part:
            raise EOFError("the other side closed the connection")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
