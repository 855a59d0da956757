"""The program of a client: makes real connections and datagram exchanges and says how each ended.

    echo '{"targets": [{"protocol": "tcp", "ip": "10.96.0.10", "port": 80, "tries": 100}]}' | python -m e2e.world.probe

The first line on stdin is the order. With "interval_s" in it every target is tried once each interval until stdin ends,
else `tries` times as fast as it goes. The answer is one JSON line: [target, began, took_s, outcome, name, source,
resent] for each attempt, by CLOCK_MONOTONIC, which all processes of a machine share. Outcomes: answered, refused,
timed-out, unreachable, broken. `resent` is how often the kernel sent a SYN again before it was answered. Only the
standard library.

Each attempt has a socket of its own, with the next source port, from "first_port" on. Datagrams from a port that was
used half a minute ago would be no new exchange but part of an old one to connection tracking, and go where that one
went; so would a SYN for two minutes, if an earlier one had no answer.

A machine that stands still answers nobody, and that is no time-out: the time in which the client itself didn't run
isn't counted against an attempt.
"""

import errno
import json
import select
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator

_IN_FLIGHT = 64
_TIMEOUT_S = 2.0
_TICK_S = 0.01  # how late a time-out may be seen
_STOOD_S = 0.25  # a look that is later than that is a machine that stood still
_REQUEST = b"GET / HTTP/1.1\r\nHost: world\r\nConnection: close\r\n\r\n"
_QUESTION = b"who?"
# After a whole answer the socket is reset, not closed: nothing waits in TIME_WAIT, and conntrack forgets soon.
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_PORTS = range(1024, 65536)
_TOTAL_RETRANS = struct.Struct("=100xI")  # of struct tcp_info, include/uapi/linux/tcp.h
_UNREACHABLE = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EACCES, errno.EPERM, errno.EADDRNOTAVAIL}

Order = dict[str, object]
Record = tuple[int, float, float, str, str, str, int]


class Target:
    """Where to, as the order says it."""

    def __init__(self, order: dict[str, object]) -> None:
        ip, port = str(order["ip"]), int(str(order["port"]))
        self.address = (ip, port)
        self.is_tcp = str(order["protocol"]).lower() == "tcp"
        self.tries = int(str(order.get("tries", 1)))
        self.timeout_s = float(str(order.get("timeout_s", _TIMEOUT_S)))
        self.family = socket.AF_INET6 if ":" in ip else socket.AF_INET


class Attempt:
    """One connection or exchange on its way."""

    def __init__(self, index: int, target: Target) -> None:
        self.index, self.target = index, target
        self.began = time.monotonic()
        self.deadline = self.began + target.timeout_s
        self.asked = False
        self.resent = 0
        self.answer = b""
        self.sock = socket.socket(target.family, socket.SOCK_STREAM if target.is_tcp else socket.SOCK_DGRAM)
        self.sock.settimeout(0.0)
        if target.is_tcp:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)

    def step(self) -> bool:
        """Do what the socket is ready for; True once the whole answer is there. OSError ends the attempt."""
        if not self.asked:
            if code := self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(code, "connect")
            self.resent = _count_resent(self.sock) if self.target.is_tcp else 0
            self.sock.send(_REQUEST if self.target.is_tcp else _QUESTION)
            self.asked = True
            return False
        data = self.sock.recv(65536)
        if not data:
            raise ConnectionResetError(errno.ECONNRESET, "closed in mid-answer")
        self.answer += data
        return self.answer.endswith(b"}\n")

    def record(self, outcome: str) -> Record:
        """How it ended."""
        name = source = ""
        if outcome == "answered":
            said = json.loads(self.answer.rpartition(b"\r\n")[2])
            name, source = said["name"], said["source"]
        return (self.index, self.began, time.monotonic() - self.began, outcome, name, source, self.resent)


class Attempts:
    """All that is on its way, and the records of all that ended."""

    def __init__(self, targets: list[Target], first_port: int) -> None:
        self._targets = targets
        self._ports = dict.fromkeys((True, False), first_port)  # the last that was used
        self._poll = select.epoll()
        self._open: dict[int, Attempt] = {}
        self._looked = time.monotonic()
        self.records: list[Record] = []

    def __len__(self) -> int:
        return len(self._open)

    def start(self, index: int) -> None:
        """Begin an attempt at a target."""
        attempt = Attempt(index, self._targets[index])
        self._bind(attempt)
        code = attempt.sock.connect_ex(attempt.target.address)
        if code not in {0, errno.EINPROGRESS}:
            self._end(attempt, _outcome(code))
            return
        self._open[attempt.sock.fileno()] = attempt
        self._poll.register(attempt.sock, select.EPOLLOUT)

    def _bind(self, attempt: Attempt) -> None:
        """To the protocol's next source port that is free."""
        is_tcp = attempt.target.is_tcp
        for _ in _PORTS:
            port = self._ports[is_tcp] + 1
            self._ports[is_tcp] = port if port in _PORTS else _PORTS[0]
            try:
                attempt.sock.bind(("", self._ports[is_tcp]))
            except OSError:
                continue
            return

    def wait(self, until: float) -> None:
        """Serve the sockets until that time, or until one of them had something, whichever is first."""
        patience_s = max(0.0, until - time.monotonic())
        for fileno, _ in self._poll.poll(patience_s):
            if (attempt := self._open.get(fileno)) is not None:
                self._step(fileno, attempt)
        now = time.monotonic()
        self._forgive(now - self._looked - patience_s)
        self._looked = now
        for fileno, attempt in [(f, a) for f, a in self._open.items() if a.deadline <= now]:
            del self._open[fileno]
            self._end(attempt, "timed-out")

    def _forgive(self, late_s: float) -> None:
        """Give what is on its way the time in which the client stood still."""
        if late_s > _STOOD_S:
            for attempt in self._open.values():
                attempt.deadline += late_s

    def _step(self, fileno: int, attempt: Attempt) -> None:
        try:
            whole = attempt.step()
        except BlockingIOError:
            return
        except OSError as error:
            outcome = _outcome(error.errno or 0)
        else:
            if not whole:
                self._poll.modify(fileno, select.EPOLLIN)
                return
            outcome = "answered"
        del self._open[fileno]
        self._end(attempt, outcome)

    def _end(self, attempt: Attempt, outcome: str) -> None:
        self.records.append(attempt.record(outcome))
        attempt.sock.close()


def run_once(targets: list[Target], attempts: Attempts) -> list[Record]:
    """Every target `tries` times, a fixed number of attempts at once, the targets taking turns."""
    waiting = deque(take_turns(target.tries for target in targets))
    while waiting or len(attempts):
        while waiting and len(attempts) < _IN_FLIGHT:
            attempts.start(waiting.popleft())
        attempts.wait(time.monotonic() + _TICK_S)
    return attempts.records


def run_loop(targets: list[Target], attempts: Attempts, interval_s: float) -> list[Record]:
    """Every target once an interval until stdin ends; then what is on its way may still end."""
    stop = select.poll()
    stop.register(sys.stdin, select.POLLIN | select.POLLHUP)
    print("ready", flush=True)
    due = time.monotonic()
    while not stop.poll(0):
        for index in range(len(targets)):
            attempts.start(index)
        due = max(due + interval_s, time.monotonic())
        while (now := time.monotonic()) < due:
            attempts.wait(min(due, now + _TICK_S))
    while len(attempts):
        attempts.wait(time.monotonic() + _TICK_S)
    return attempts.records


def take_turns(tries: Iterable[int]) -> Iterator[int]:
    """Each index as often as its count says, one of each in turn: no target gets all its tries at one moment."""
    left = dict(enumerate(tries))
    while left:
        for index in list(left):
            if left[index] <= 0:
                del left[index]
                continue
            left[index] -= 1
            yield index


def _count_resent(sock: socket.socket) -> int:
    """Segments of the connection that the kernel sent again; before the first data these are SYNs."""
    (count,) = _TOTAL_RETRANS.unpack(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TOTAL_RETRANS.size))
    return int(count)


def _outcome(code: int) -> str:
    if code == errno.ECONNREFUSED:
        return "refused"
    if code == errno.ETIMEDOUT:
        return "timed-out"
    return "unreachable" if code in _UNREACHABLE else "broken"


def main() -> int:
    """Follow the order on stdin."""
    with open(0, "rb", buffering=0, closefd=False) as stdin:  # unbuffered: the loop polls what follows
        order = json.loads(stdin.readline())
    targets = [Target(target) for target in order["targets"]]
    attempts = Attempts(targets, int(order.get("first_port", _PORTS[0])))
    interval_s = order.get("interval_s")
    records = run_once(targets, attempts) if interval_s is None else run_loop(targets, attempts, float(interval_s))
    json.dump(records, sys.stdout)
    print(flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
