"""The program of a client that looks names up: DNS queries at a steady pace, and how each look-up fared.

    echo '{"interval_s": 0.04, "names": [["kubernetes.default.svc.cluster.local", "A", "10.96.0.1"]],
           "targets": [{"protocol": "udp", "ip": "10.96.0.10", "port": 53}]}' | python lookups.py

The first line on stdin is the order (here broken in two). Every target gets one look-up an interval, of the names in
turn, until stdin ends. The answer is one JSON line: [target, began, took_s, tries, server, fault] for each look-up, by
CLOCK_MONOTONIC; `server` is who answered, by NSID (RFC 5001), and `fault` why nobody did ("" if somebody did).

It tries again as glibc's resolver does (read in its res_send.c, 2.26): a datagram "attempts" times, each from a new
port and for "timeout_s", at once after a refusal or a server's failure; a TCP connection once, and once more after a
reset. On TCP glibc has no time-out of its own; here one ends after as long as all datagrams may take. Only the
standard library.
"""

import errno
import itertools
import json
import random
import select
import socket
import struct
import sys
import time
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

_HEADER = struct.Struct("!6H")  # RFC 1035, 4.1.1: id, flags, and how many of each section
_RECORD = struct.Struct("!HHIH")  # 4.1.3, after the name: type, class, TTL, length
_OPTION = struct.Struct("!HH")  # RFC 6891, 6.1.2: code, length
_KINDS = {"A": 1, "AAAA": 28}
_OPT, _NSID, _IN = 41, 3, 1
_DATAGRAM_BYTES = 1232  # of an answer, as we say it in our OPT record
_QUERY, _RESPONSE, _TRUNCATED, _RCODE = 0x0100, 0x8000, 0x0200, 0x000F  # of the flags; a query desires recursion
_POINTER = 0xC0
_TICK_S = 0.01
_TIMEOUT_S, _ATTEMPTS = 5.0, 2  # resolv.conf(5)


class Fault(StrEnum):
    """Why a try had no answer."""

    SHORT = "short"  # the message ends too soon
    FOREIGN = "foreign"  # no response, or to another query
    TRUNCATED = "truncated"
    SERVER = "server-failure"  # any RCODE but the next
    NO_NAME = "no-such-name"
    NO_ADDRESS = "no-address"  # the one asked for isn't among the answer's
    REFUSED = "refused"
    TIMED_OUT = "timed-out"
    UNREACHABLE = "unreachable"
    BROKEN = "broken"  # reset, or closed in mid-answer


FINAL = {Fault.NO_NAME, Fault.NO_ADDRESS}  # a server's last word
_ERRORS = {errno.ECONNREFUSED: Fault.REFUSED, errno.ETIMEDOUT: Fault.TIMED_OUT} | dict.fromkeys(
    (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EACCES, errno.EPERM, errno.EADDRNOTAVAIL), Fault.UNREACHABLE
)


class Question(NamedTuple):
    """What to ask, and what is expected."""

    name: str
    kind: str  # "A" or "AAAA"
    address: str  # one that the answer must have


class Answer(NamedTuple):
    """What a server said."""

    addresses: tuple[str, ...]
    server: str  # its NSID; "" if it gave none


def encode_query(number: int, question: Question) -> bytes:
    """A query that asks for the server's NSID too. The name's labels are ASCII, of 63 characters at most."""
    labels = question.name.rstrip(".").encode().split(b".")
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    asked = name + struct.pack("!HH", _KINDS[question.kind], _IN)
    wants = _OPTION.pack(_NSID, 0)
    opt = b"\0" + _RECORD.pack(_OPT, _DATAGRAM_BYTES, 0, len(wants)) + wants
    return _HEADER.pack(number, _QUERY, 1, 0, 0, 1) + asked + opt


def parse_response(message: bytes, number: int) -> Answer | Fault:
    """The addresses of all sections and the NSID, or why there are none; `number` is the query's."""
    if len(message) < _HEADER.size:
        return Fault.SHORT
    given, flags, questions, *counts = _HEADER.unpack_from(message)
    if given != number or not flags & _RESPONSE:
        return Fault.FOREIGN
    if flags & _TRUNCATED:
        return Fault.TRUNCATED
    if rcode := flags & _RCODE:
        return Fault.NO_NAME if rcode == 3 else Fault.SERVER
    at: int | None = _HEADER.size
    for _ in range(questions):
        at = _skip_name(message, at)
        at = None if at is None else at + 4
    addresses, server = [], ""
    for _ in range(sum(counts)):
        at = _skip_name(message, at)
        if at is None or at + _RECORD.size > len(message):
            return Fault.SHORT
        kind, _, _, length = _RECORD.unpack_from(message, at)
        data = message[at + _RECORD.size : at + _RECORD.size + length]
        at += _RECORD.size + length
        if (kind, len(data)) in {(1, 4), (28, 16)}:
            addresses.append(socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, data))
        elif kind == _OPT:
            server = parse_nsid(data) or server
    return Fault.SHORT if at is None or at > len(message) else Answer(tuple(addresses), server)


def parse_nsid(options: bytes) -> str:
    """The NSID among the options of an OPT record; "" if there is none."""
    at = 0
    while at + _OPTION.size <= len(options):
        code, length = _OPTION.unpack_from(options, at)
        at += _OPTION.size
        if code == _NSID:
            return options[at : at + length].decode("ascii", "replace")
        at += length
    return ""


def _skip_name(message: bytes, at: int | None) -> int | None:
    """Where the name there ends; None if it doesn't. A pointer is a name's last part (RFC 1035, 4.1.4)."""
    while at is not None and at < len(message):
        length = message[at]
        if length >= _POINTER:
            return at + 2
        at += 1 + length
        if not length:
            return at
    return None


class LookUp:
    """One look-up on its way, and the socket of its present try."""

    def __init__(self, index: int, order: dict[str, object], question: Question, patience: tuple[float, int]) -> None:
        self.index, self.question = index, question
        self.address = (str(order["ip"]), int(str(order["port"])))
        self.is_tcp = order["protocol"] == "tcp"
        timeout_s, attempts = patience
        self.limit_s, self.tries_left = (timeout_s * attempts, 1) if self.is_tcp else (timeout_s, attempts)
        self.began = time.monotonic()
        self.tries = 0

    def open(self) -> int:
        """Begin the next try; the error number, 0 if it is on its way."""
        self.tries += 1
        self.tries_left -= 1
        self.deadline = time.monotonic() + self.limit_s
        self.number = random.getrandbits(16)
        self.asked, self.received = False, b""
        family = socket.AF_INET6 if ":" in self.address[0] else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM if self.is_tcp else socket.SOCK_DGRAM)
        self.sock.settimeout(0.0)
        code = self.sock.connect_ex(self.address)
        return 0 if code == errno.EINPROGRESS else code

    def step(self) -> Answer | Fault | None:
        """Do what the socket is ready for; None while there is more to wait for. OSError ends the try."""
        if not self.asked:
            if code := self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(code, "connect")
            query = encode_query(self.number, self.question)
            self.sock.send(struct.pack("!H", len(query)) + query if self.is_tcp else query)
            self.asked = True
            return None
        data = self.sock.recv(65536)
        if not self.is_tcp:
            answer = parse_response(data, self.number)
            return None if answer is Fault.FOREIGN else answer
        if not data:
            raise ConnectionResetError(errno.ECONNRESET, "closed in mid-answer")
        self.received += data
        whole = int.from_bytes(self.received[:2]) + 2
        return parse_response(self.received[2:whole], self.number) if len(self.received) >= max(2, whole) else None


class LookUps:
    """All that is on its way, and the records of all that ended."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._open: dict[int, LookUp] = {}
        self.records: list[tuple[int, float, float, int, str, str]] = []

    def __len__(self) -> int:
        return len(self._open)

    def start(self, lookup: LookUp) -> None:
        """Begin a look-up, or its next try."""
        if code := lookup.open():
            self._end(lookup, _ERRORS.get(code, Fault.BROKEN))
            return
        self._open[lookup.sock.fileno()] = lookup
        self._poll.register(lookup.sock, select.EPOLLOUT)

    def wait(self, until: float) -> None:
        """Serve the sockets until that time, or until one of them had something, whichever is first."""
        for fileno, _ in self._poll.poll(max(0.0, until - time.monotonic())):
            if (lookup := self._open.get(fileno)) is not None:
                self._step(fileno, lookup)
        now = time.monotonic()
        for fileno, lookup in [(f, one) for f, one in self._open.items() if one.deadline <= now]:
            del self._open[fileno]
            self._end(lookup, Fault.TIMED_OUT)

    def _step(self, fileno: int, lookup: LookUp) -> None:
        try:
            answer = lookup.step()
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno == errno.ECONNRESET and lookup.tries == 1:
                lookup.tries_left += 1
            answer = _ERRORS.get(error.errno or 0, Fault.BROKEN)
        if answer is None:
            self._poll.modify(fileno, select.EPOLLIN)
            return
        del self._open[fileno]
        self._end(lookup, answer)

    def _end(self, lookup: LookUp, answer: Answer | Fault) -> None:
        """Of one try; the look-up ends with it, or goes on."""
        lookup.sock.close()
        if isinstance(answer, Answer) and lookup.question.address not in answer.addresses:
            answer = Fault.NO_ADDRESS
        if isinstance(answer, Fault) and answer not in FINAL and lookup.tries_left > 0:
            self.start(lookup)
            return
        server, fault = (answer.server, "") if isinstance(answer, Answer) else ("", str(answer))
        took_s = time.monotonic() - lookup.began
        self.records.append((lookup.index, lookup.began, took_s, lookup.tries, server, fault))


def run(order: dict[str, object], lookups: LookUps) -> None:
    """Every target one look-up an interval until stdin ends; then what is on its way may still end."""
    targets: list[dict[str, object]] = order["targets"]  # type: ignore[assignment]  # as the order says
    names: list[list[str]] = order["names"]  # type: ignore[assignment]
    questions: Iterator[Question] = itertools.cycle(Question(*name) for name in names)
    patience = float(str(order.get("timeout_s", _TIMEOUT_S))), int(str(order.get("attempts", _ATTEMPTS)))
    interval_s = float(str(order["interval_s"]))
    stop = select.poll()
    stop.register(sys.stdin, select.POLLIN | select.POLLHUP)
    print("ready", flush=True)
    due = time.monotonic()
    while not stop.poll(0):
        question = next(questions)
        for index, target in enumerate(targets):
            lookups.start(LookUp(index, target, question, patience))
        due = max(due + interval_s, time.monotonic())
        while (now := time.monotonic()) < due:
            lookups.wait(min(due, now + _TICK_S))
    while len(lookups):
        lookups.wait(time.monotonic() + _TICK_S)


def main() -> int:
    """Follow the order on stdin."""
    with open(0, "rb", buffering=0, closefd=False) as stdin:  # unbuffered: the loop polls what follows
        order = json.loads(stdin.readline())
    lookups = LookUps()
    run(order, lookups)
    json.dump(lookups.records, sys.stdout)
    print(flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
