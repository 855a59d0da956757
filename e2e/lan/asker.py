"""The program of the cold client: asks who has the VIP, by frames of its own, and hears all who say so.

    echo '{"interval_s": 0.05, "mac": "02:..", "vip": "172.31.0.100", "senders": ["172.31.0.208"]}' | python asker.py

Each question is a broadcast ARP request, or a multicast neighbour solicitation, from the next of the senders: an
answer tells by its target which of the last questions it belongs to. The first line on stdin is the order; "ready" is
said at once. When stdin ends the answer is one JSON line, in seconds of time.monotonic():
{"asked": [second, ..], "answers": [[number of the question, second, MAC], ..], "announced": [[second, MAC], ..]}.
Announced is whatever names the VIP's MAC and answers none of our questions. Only the standard library.
"""

import json
import select
import socket
import struct
import sys
import time

ARP, IPV6 = 0x0806, 0x86DD
_ETHERNET = struct.Struct("!6s6sH")
_ARP = struct.Struct("!HHBBH6s4s6s4s")  # RFC 826
_IPV6 = struct.Struct("!IHBB16s16s")
_NEIGHBOUR = struct.Struct("!BBHI16sBB6s")  # RFC 4861 4.3, 4.4: type, code, sum, flags, target; one option with a MAC
_SOLICITATION, _ADVERTISEMENT = 135, 136
_ICMPV6 = 58
_LATE_S = 0.3


def build_question(mac: bytes, sender: str, vip: str) -> bytes:
    """The whole frame."""
    if ":" not in vip:
        body = _ARP.pack(1, 0x0800, 6, 4, 1, mac, socket.inet_aton(sender), bytes(6), socket.inet_aton(vip))
        return _ETHERNET.pack(b"\xff" * 6, mac, ARP) + body
    source, target = (socket.inet_pton(socket.AF_INET6, ip) for ip in (sender, vip))
    group = socket.inet_pton(socket.AF_INET6, "ff02::1:ff00:0")[:13] + target[13:]
    message = _NEIGHBOUR.pack(_SOLICITATION, 0, 0, 0, target, 1, 1, mac)
    checksum = sum_of(source + group + struct.pack("!II", len(message), _ICMPV6) + message)
    message = message[:2] + struct.pack("!H", checksum) + message[4:]
    head = _IPV6.pack(6 << 28, len(message), _ICMPV6, 255, source, group)
    return _ETHERNET.pack(b"\x33\x33" + group[12:], mac, IPV6) + head + message


def parse_claim(frame: bytes, vip: bytes) -> tuple[str, bytes] | None:
    """The MAC that the frame says the VIP has, and the address that it says so to; None if it says nothing of it."""
    if len(frame) < _ETHERNET.size:
        return None
    kind, body = _ETHERNET.unpack_from(frame)[2], frame[_ETHERNET.size :]
    if kind == ARP and len(body) >= _ARP.size:
        *_, mac, said, _, target = _ARP.unpack_from(body)
        return (mac.hex(":"), target) if said == vip else None
    if kind != IPV6 or len(body) < _IPV6.size + _NEIGHBOUR.size:
        return None
    _, _, next_header, _, _, destination = _IPV6.unpack_from(body)
    message, _, _, _, target, option, _, mac = _NEIGHBOUR.unpack_from(body, _IPV6.size)
    if (next_header, message, option) != (_ICMPV6, _ADVERTISEMENT, 2) or target != vip:
        return None
    return mac.hex(":"), destination


def sum_of(data: bytes) -> int:
    """The checksum of RFC 1071; an even number of bytes."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Asker:
    """Both sockets of the cold client, what it asked and what it heard."""

    def __init__(self, order: dict[str, object], senders: list[str]) -> None:
        vip = str(order["vip"])
        family = socket.AF_INET6 if ":" in vip else socket.AF_INET
        mac = bytes.fromhex(str(order["mac"]).replace(":", ""))
        self.asked: list[float] = []
        self.answers: list[tuple[int, float, str]] = []
        self.announced: list[tuple[float, str]] = []
        self._vip = socket.inet_pton(family, vip)
        self._frames = [build_question(mac, sender, vip) for sender in senders]
        self._slots = {socket.inet_pton(family, sender): slot for slot, sender in enumerate(senders)}
        self._sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(IPV6 if ":" in vip else ARP))
        self._sock.bind(("eth0", IPV6 if ":" in vip else ARP))
        self._sock.settimeout(0.0)

    def ask(self) -> None:
        """The next question. One that the kernel refuses is unanswered like any other."""
        frame = self._frames[len(self.asked) % len(self._frames)]
        self.asked.append(time.monotonic())
        try:
            self._sock.send(frame)
        except OSError:
            return

    def read_until(self, end: float) -> None:
        """Hear until then."""
        while (left := end - time.monotonic()) > 0:
            readable, _, _ = select.select([self._sock], [], [], left)
            if readable:
                self._read()

    def _read(self) -> None:
        try:
            frame, (_, _, direction, *_) = self._sock.recvfrom(2048)
        except OSError:
            return
        claim = None if direction == socket.PACKET_OUTGOING else parse_claim(frame, self._vip)
        if claim is None:
            return
        mac, target = claim
        slot = self._slots.get(target)
        if slot is None or slot >= len(self.asked):
            self.announced.append((time.monotonic(), mac))
        else:
            last = len(self.asked) - 1
            self.answers.append((last - (last - slot) % len(self._frames), time.monotonic(), mac))


def main() -> int:
    """Follow the order on stdin."""
    with open(0, "rb", buffering=0, closefd=False) as stdin:  # unbuffered: what follows is polled
        order = json.loads(stdin.readline())
    asker = Asker(order, [str(sender) for sender in order["senders"]])
    stop = select.poll()
    stop.register(sys.stdin, select.POLLIN | select.POLLHUP)
    print("ready", flush=True)
    due = time.monotonic()
    while not stop.poll(0):
        asker.ask()
        due = max(due + float(order["interval_s"]), time.monotonic())
        asker.read_until(due)
    asker.read_until(time.monotonic() + _LATE_S)
    print(json.dumps({"asked": asker.asked, "answers": asker.answers, "announced": asker.announced}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
