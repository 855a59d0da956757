"""The program of the warm client: one flow of datagrams, each numbered, and when each was answered, and by whom.

    echo '{"interval_s": 0.01, "ip": "172.31.0.100", "port": 8081}' | python stream.py

The first line on stdin is the order. "ready" is said at the first answer; the flow goes on until stdin ends, and a
second more for late answers. The answer is one JSON line: {"sent": [second, ..], "answers": [[number, second, name],
..]}, in seconds of time.monotonic(). Only the standard library.
"""

import json
import select
import socket
import sys
import time

_LAST_S = 1.0


class Stream:
    """One pair of ports."""

    def __init__(self, ip: str, port: int) -> None:
        self.sent: list[float] = []
        self.answers: list[tuple[int, float, str]] = []
        self._sock = socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_DGRAM)
        self._sock.settimeout(0.0)
        self._target = (ip, port)

    def send(self) -> None:
        """The next datagram. One that the kernel refuses is lost like any other."""
        number = len(self.sent)
        self.sent.append(time.monotonic())
        try:
            self._sock.sendto(b"%d" % number, self._target)
        except OSError:
            return

    def read_until(self, end: float) -> None:
        """Take answers until then."""
        while (left := end - time.monotonic()) > 0:
            readable, _, _ = select.select([self._sock], [], [], left)
            if readable:
                self._read()

    def _read(self) -> None:
        try:
            data = self._sock.recv(2048)
        except OSError:  # an ICMP error of an earlier datagram
            return
        number, _, name = data.decode().partition(" ")
        self.answers.append((int(number), time.monotonic(), name))


def main() -> int:
    """Follow the order on stdin."""
    with open(0, "rb", buffering=0, closefd=False) as stdin:  # unbuffered: what follows is polled
        order = json.loads(stdin.readline())
    stream = Stream(str(order["ip"]), int(order["port"]))
    stop = select.poll()
    stop.register(sys.stdin, select.POLLIN | select.POLLHUP)
    due, said = time.monotonic(), False
    while not stop.poll(0):
        stream.send()
        due = max(due + float(order["interval_s"]), time.monotonic())
        stream.read_until(due)
        if stream.answers and not said:
            print("ready", flush=True)
            said = True
    stream.read_until(time.monotonic() + _LAST_S)
    print(json.dumps({"sent": stream.sent, "answers": stream.answers}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
