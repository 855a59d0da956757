"""EFFECT: the program that speaks for all members but one, on one interface that has the addresses of all of them.

Its only argument is the order, as JSON: {"members": count, "vips": count, "interval_s": seconds}. "ready" is said when
the first heartbeats are out. Once the measured announcer claims something, the others claim their shares. At the end of
stdin one JSON line tells {"claimed": how many keys it claimed, "first_s": when it claimed the first of its own share,
"last_s": the last}, by time.monotonic(). What it claims beyond its share it takes as this program was late to claim it.
"""

import json
import select
import socket
import sys
import time

import msgspec

from e2e.lan.scale.plan import CROWD_MAC, FIRST_PORT, GATEWAY, KEY, PREFIX_LENGTH, WIRE, Peer, plan_members, plan_vips
from e2e.lan.scale.puppets import Puppet, deal
from endpointslice.types import IP
from proxy.announcer.beat_sockets import MessageSocket, Ports, open_node_socket, open_wire_socket
from proxy.announcer.datagram import parse_datagram
from proxy.announcer.ethernet import parse_mac
from proxy.announcer.wires import WireLink
from proxy.l2.messages import Claims, Message
from proxy.l2.types import DEFAULT, NODE_NETWORK, Channel, Key, member_id

_INTERFACE = "eth0"
_KEYS = {1: KEY}


class Order(msgspec.Struct):
    """What is asked of it."""

    members: int
    vips: int
    interval_s: float


class Crowd:
    """Its sockets, and whom it speaks for."""

    def __init__(self, order: Order) -> None:
        number = socket.if_nametoindex(_INTERFACE)
        members = plan_members(order.members)
        self._target = members[0]
        self._puppets = {member_id(peer.node): Puppet(peer, members, CROWD_MAC) for peer in members[1:]}
        self._links = {peer: self._link(peer, number) for peer in members[1:]}
        self._shares = deal(members, plan_vips(order.vips))
        self._own_share = frozenset(self._shares[member_id(self._target.node)])
        self._claimed: set[Key] = set()
        self._claims_s: list[float] = []
        ports = Ports(FIRST_PORT)
        link = next(iter(self._links.values()))
        self._beats = {
            WIRE: open_wire_socket(link, ports.beats),
            NODE_NETWORK: open_node_socket(ports.node_beats, is_v6=False),
        }
        self._urgent = {
            WIRE: open_wire_socket(link, ports.urgent),
            NODE_NETWORK: open_node_socket(ports.node_urgent, is_v6=False),
        }

    def _link(self, peer: Peer, number: int) -> WireLink:
        mac = parse_mac(CROWD_MAC)
        assert mac is not None
        return WireLink(WIRE, _INTERFACE, number, mac, carrier=True, own=peer.address, gateway=GATEWAY)

    def beat(self, puppet: Puppet) -> None:
        """One heartbeat of one member on the wire; each second time on the node network as well, if they are many."""
        now = time.monotonic()
        puppet.beats += 1
        for channel, sock in self._beats.items():
            if channel == NODE_NETWORK and puppet.beats % 2 and len(self._puppets) > DEFAULT.crowd:
                continue
            for data in puppet.beat(channel, now):
                self._send(sock, puppet, channel, data)

    def _send(self, sock: MessageSocket, puppet: Puppet, channel: Channel, data: bytes) -> None:
        group = channel == WIRE and sock is self._beats[WIRE]
        sock.send(data, IP("224.0.0.254") if group else self._target.address, self._links[puppet.peer])

    def hear(self) -> None:
        """Whatever has come in."""
        for sock in self._beats.values():
            while sock.receive() is not None:
                pass
        for channel, sock in self._urgent.items():
            while (arrived := sock.receive()) is not None:
                message = parse_datagram(arrived.data, channel, _KEYS)
                if isinstance(message, Message):
                    self._take(message, channel, arrived.age_s)

    def _take(self, message: Message, channel: Channel, age_s: float) -> None:
        now = time.monotonic()
        if isinstance(message.body, Claims) and not message.to:
            self._note_claims(message.body, now, age_s)
        puppet = self._puppets.get(message.to)
        for data in puppet.answer(message, channel, now) if puppet is not None else ():
            assert puppet is not None
            self._send(self._urgent[channel], puppet, channel, data)

    def _note_claims(self, claims: Claims, now: float, age_s: float) -> None:
        """By the time at which the kernel had them: to claim for all the others takes this program a while."""
        keys = {entry.key for entry in claims.entries if entry.version.owner == member_id(self._target.node)}
        if keys and not self._claimed:
            self._claim_shares(now)
        if keys - self._claimed:
            if not self._own_share or (keys - self._claimed) & self._own_share:
                self._claims_s.append(now - age_s)
            self._claimed |= keys
            for puppet in self._puppets.values():
                puppet.yield_keys(keys)

    def _claim_shares(self, now: float) -> None:
        for member, puppet in self._puppets.items():
            puppet.claim(self._shares[member])
            for channel, sock in self._urgent.items():
                for data in puppet.tell_claims(channel, now):
                    self._send(sock, puppet, channel, data)

    def run(self, interval_s: float) -> None:
        """Each member speaks once an interval, all at different times, until stdin ends."""
        poll = select.poll()
        for sock in self._urgent.values():
            poll.register(sock.fileno(), select.POLLIN)
        poll.register(sys.stdin, select.POLLIN | select.POLLHUP)
        due = [(time.monotonic() + interval_s * at / len(self._puppets), one) for at, one in enumerate(self._puppets)]
        print("ready", flush=True)
        while True:
            at_s, member = due.pop(0)
            while (left_s := at_s - time.monotonic()) > 0:
                if any(number == sys.stdin.fileno() for number, _event in poll.poll(left_s * 1000)):
                    return
                self.hear()
            self.beat(self._puppets[member])
            due.append((max(at_s + interval_s, time.monotonic()), member))

    def report(self) -> str:
        """What was seen."""
        first_s, last_s = (min(self._claims_s), max(self._claims_s)) if self._claims_s else (0.0, 0.0)
        return json.dumps({"claimed": len(self._claimed), "first_s": first_s, "last_s": last_s})


def render_interface(members: int) -> tuple[str, ...]:
    """Lines for `ip` that give the interface everybody's addresses, and the gateway's."""
    addresses = [*(peer.address for peer in plan_members(members)[1:]), GATEWAY]
    return (
        "link set lo up",
        *(f"address add {address}/{PREFIX_LENGTH} dev {_INTERFACE}" for address in addresses),
        f"link set {_INTERFACE} address {CROWD_MAC} up",
    )


def main() -> int:
    """Follow the order."""
    order = msgspec.json.decode(sys.argv[1], type=Order)
    crowd = Crowd(order)
    crowd.run(order.interval_s)
    print(crowd.report(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
