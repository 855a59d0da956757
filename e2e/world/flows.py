"""The program of a client that stays: connections and datagram flows that go on asking, and how each fared.

    echo '{"interval_s": 0.05, "flows": [{"protocol": "tcp", "ip": "10.96.0.10", "port": 80}]}' | python flows.py

The first line on stdin is the order. "ready" is said once every flow had an answer; then each asks once an interval
until stdin ends. The answer is one JSON line: [name, asked, lost, moved, broken] for each flow: who answered first, how
many questions, how many had no answer within two seconds (or the flow's "timeout_s"), how many were answered by another
server, and what broke the connection ("" if nothing did). Only the standard library.
"""

import json
import select
import socket
import sys
import time

_REQUEST = b"GET / HTTP/1.1\r\nHost: world\r\nConnection: keep-alive\r\n\r\n"
_TIMEOUT_S = 2.0


class Flow:
    """One connection, or one pair of ports."""

    def __init__(self, order: dict[str, object]) -> None:
        self.is_tcp = order["protocol"] == "tcp"
        address = (str(order["ip"]), int(str(order["port"])))
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM if self.is_tcp else socket.SOCK_DGRAM)
        self._timeout_s = float(str(order.get("timeout_s", _TIMEOUT_S)))
        self.sock.settimeout(self._timeout_s)
        self.sock.connect(address)
        self.name = ""
        self.asked = self.lost = self.moved = 0
        self.broken = ""
        self._asked_at = 0.0
        self._waits = False
        self._answer = b""

    def ask(self) -> None:
        """Send a question, unless the last one still waits for its answer."""
        if self.broken or self._waits:
            return
        try:
            self.sock.send(_REQUEST if self.is_tcp else b"who?")
        except OSError as error:
            self._fail(error)
        else:
            self.asked += 1
            self._asked_at, self._waits, self._answer = time.monotonic(), True, b""

    def read(self) -> None:
        """Take what has arrived."""
        try:
            data = self.sock.recv(65536)
        except OSError as error:
            self._fail(error)
            return
        if not data:
            self._fail(OSError("closed by the server"))
            return
        self._answer += data
        if self._answer.endswith(b"}\n"):
            name = json.loads(self._answer.rpartition(b"\r\n")[2])["name"]
            self.name = self.name or name
            self.moved += name != self.name
            self._waits, self._answer = False, b""

    def expire(self) -> None:
        """Give up a question that is too old."""
        if self._waits and time.monotonic() - self._asked_at > self._timeout_s:
            self.lost += 1
            self._waits = False

    @property
    def waits(self) -> bool:
        """Whether an answer may still come."""
        return self._waits and not self.broken

    def _fail(self, error: OSError) -> None:
        """A connection breaks at an error; of datagrams one is lost."""
        self._waits = False
        if self.is_tcp:
            self.broken = error.strerror or str(error)
        else:
            self.lost += 1


def serve(flows: list[Flow], seconds: float) -> None:
    """Take answers for that long."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        sockets = {flow.sock: flow for flow in flows if not flow.broken}
        readable, _, _ = select.select(list(sockets), [], [], left)
        for sock in readable:
            sockets[sock].read()
        for flow in flows:
            flow.expire()


def main() -> int:
    """Follow the order on stdin."""
    with open(0, "rb", buffering=0, closefd=False) as stdin:  # unbuffered: what follows is polled
        order = json.loads(stdin.readline())
    flows = [Flow(one) for one in order["flows"]]
    while not all(flow.name or flow.broken for flow in flows):
        for flow in flows:
            flow.ask()
        serve(flows, 0.01)
    print("ready", flush=True)
    stop = select.poll()
    stop.register(sys.stdin, select.POLLIN | select.POLLHUP)
    while not stop.poll(0):
        for flow in flows:
            flow.ask()
        serve(flows, float(order["interval_s"]))
    while any(flow.waits for flow in flows):
        serve(flows, 0.01)
    print(json.dumps([[f.name, f.asked, f.lost, f.moved, f.broken] for f in flows]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
