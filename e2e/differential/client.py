"""The program of a client: for each target, the set of fates that its connections meet.

Each line on stdin is an order, {"timeout_s": 0.25, "failed_tries": 2, "targets": [["TCP", ip, port, candidates], ..]};
the answer is one line, a list of fates for each target. A fate is the server's words, or refused, timed-out,
unreachable, or another end.
Prints "ready" first. Only the standard library.

How often: endpoints are chosen at random, all equally often. After seeing K fates, one of a (K+1)th would have stayed
unseen in N tries with probability at most (K+1) (1-1/(K+1))^N; tries go on until that is below 1e-9, or until every
candidate was seen. A target whose first `failed_tries` tries all were refused, or all timed out, is done.
"""

import errno
import json
import math
import select
import socket
import struct
import sys
import time

_MISSED = 1e-9
_IN_FLIGHT = 256
_TICK_S = 0.01
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_PORTS = range(1024, 65536)
_UNREACHABLE = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EACCES, errno.EPERM, errno.EADDRNOTAVAIL}
_IPV6_RECVERR = 25
_ERROR_BYTES = 16  # of sock_extended_err, which begins with the errno
_PINGS = {socket.IPPROTO_ICMP, socket.IPPROTO_ICMPV6}
_QUESTIONS = {  # the kernel fills in an echo request's identifier and checksum
    ("UDP", socket.AF_INET): b"?",
    ("UDP", socket.AF_INET6): b"?",
    ("ICMP", socket.AF_INET): struct.pack("!BBHHH", 8, 0, 0, 0, 1),
    ("ICMP", socket.AF_INET6): struct.pack("!BBHHH", 128, 0, 0, 0, 1),
}
_FAILURES = {"refused", "timed-out", "unreachable"}


def tries_needed(seen: int, candidates: int) -> int:
    """Tries after which a further fate beside those seen would have shown."""
    if seen == candidates:
        return 0
    return math.ceil(math.log(_MISSED / (seen + 1)) / math.log(1 - 1 / (seen + 1)))


class Target:
    """One target, and what became of its tries."""

    def __init__(self, order: list[object]) -> None:
        protocol, ip, port, candidates = order
        self.protocol = str(protocol)
        self.address = (str(ip), int(str(port)))
        self.family = socket.AF_INET6 if ":" in str(ip) else socket.AF_INET
        self.candidates = int(str(candidates))
        self.started = self.ended = 0
        self.fates: dict[str, int] = {}

    def open_tries(self, failed_tries: int) -> int:
        """How many more to start now."""
        failed = len(self.fates) == 1 and self.fates.keys() <= _FAILURES
        needed = failed_tries if failed or not self.fates else tries_needed(len(self.fates), self.candidates)
        return max(0, needed - self.started)


class Attempts:
    """All that is on its way."""

    def __init__(self) -> None:
        self.poll = select.epoll()
        self.open: dict[int, tuple[socket.socket, Target, float]] = {}
        self.port = _PORTS[0]  # source ports in turn: with one used lately a try might be part of an old flow

    def start(self, target: Target, timeout_s: float) -> None:
        """Begin a try."""
        target.started += 1
        sock = open_socket(target)
        if target.protocol == "TCP":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            if target.family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVERR, 1)  # IPv4's errors are queued without
        self.bind(sock)
        code = sock.connect_ex(target.address)
        if code in {0, errno.EINPROGRESS}:
            try:
                if target.protocol != "TCP":
                    sock.send(_QUESTIONS[target.protocol, target.family])
            except OSError as error:
                code = error.errno or 1
        if code not in {0, errno.EINPROGRESS}:
            end(sock, target, name_error(code))
            return
        self.open[sock.fileno()] = (sock, target, time.monotonic() + timeout_s)
        self.poll.register(sock, select.EPOLLIN)

    def bind(self, sock: socket.socket) -> None:
        """To the next source port that is free."""
        for _ in _PORTS:
            self.port = self.port + 1 if self.port + 1 in _PORTS else _PORTS[0]
            try:
                sock.bind(("", self.port))
            except OSError:
                continue
            return

    def wait(self) -> None:
        """Take what has come, and what is late."""
        for fileno, _ in self.poll.poll(_TICK_S):
            sock, target, _ = self.open[fileno]
            if fate := read(sock):
                del self.open[fileno]
                end(sock, target, fate)
        now = time.monotonic()
        for fileno in [fileno for fileno, (_, _, deadline) in self.open.items() if deadline <= now]:
            sock, target, _ = self.open.pop(fileno)
            end(sock, target, "timed-out")


def open_socket(target: Target) -> socket.socket:
    """One of its protocol; a ping needs the kernel's leave (sysctl ping_group_range)."""
    if target.protocol == "ICMP":
        number = socket.IPPROTO_ICMPV6 if target.family == socket.AF_INET6 else socket.IPPROTO_ICMP
        sock = socket.socket(target.family, socket.SOCK_DGRAM, number)
    else:
        sock = socket.socket(target.family, socket.SOCK_STREAM if target.protocol == "TCP" else socket.SOCK_DGRAM)
    sock.settimeout(0.0)
    return sock


def read(sock: socket.socket) -> str:
    """The fate of a socket that has something; "" if there is none yet."""
    try:
        data = sock.recv(256)
    except BlockingIOError:
        return read_error(sock)
    except OSError as error:
        return name_error(error.errno or 0)
    if sock.proto in _PINGS:
        return "echo"
    return data.decode().strip() or "closed"


def read_error(sock: socket.socket) -> str:
    """The fate that an ICMP error tells; "" without one.

    One that comes while connect() still holds the socket doesn't end the connection: the kernel sends a second SYN a
    second later, and then believes it. The error is in the socket's queue at once.
    """
    try:
        _, control, _, _ = sock.recvmsg(1, 512, socket.MSG_ERRQUEUE)
    except OSError:
        return ""
    codes = [struct.unpack_from("I", data)[0] for _, _, data in control if len(data) >= _ERROR_BYTES]
    return name_error(codes[0]) if codes else ""


def end(sock: socket.socket, target: Target, fate: str) -> None:
    """Count it."""
    sock.close()
    target.ended += 1
    target.fates[fate] = target.fates.get(fate, 0) + 1


def name_error(code: int) -> str:
    """An errno as a fate."""
    if code == errno.ECONNREFUSED:
        return "refused"
    if code == errno.ETIMEDOUT:
        return "timed-out"
    return "unreachable" if code in _UNREACHABLE else f"broken-by-{errno.errorcode.get(code, code)}"


def run(targets: list[Target], attempts: Attempts, timeout_s: float, failed_tries: int) -> None:
    """Until every target has had its tries."""
    while True:
        due = [target for target in targets if target.open_tries(failed_tries)]
        while due and len(attempts.open) < _IN_FLIGHT:
            for target in due:
                attempts.start(target, timeout_s)
            due = [target for target in due if target.open_tries(failed_tries)]
        if not attempts.open and not due:
            return
        if attempts.open:
            attempts.wait()


def main() -> int:
    """Follow the orders on stdin."""
    attempts = Attempts()
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        targets = [Target(target) for target in order["targets"]]
        run(targets, attempts, float(order["timeout_s"]), int(order["failed_tries"]))
        print(json.dumps([target.fates for target in targets]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
