"""EFFECT: all sockets of the announcer, opened and closed as wires come and go."""

import selectors
import time
from collections.abc import Iterable, Iterator, Mapping

import structlog

from endpointslice.types import IP
from proxy.announcer.beat_sockets import (
    GROUP_V4,
    GROUP_V6,
    MessageSocket,
    Ports,
    open_node_socket,
    open_wire_socket,
)
from proxy.announcer.letters import Letter
from proxy.announcer.packets import PacketSocket
from proxy.announcer.wires import WireLink, wire_of
from proxy.l2.types import NODE_NETWORK, Channel

log = structlog.get_logger()

_MOST_LETTERS = 1000  # of one port in a row: a flood stops nobody from acting

Place = tuple[str, int]  # an interface by name and index: a new one may have an old one's name
End = tuple[Place, bool]  # with whether it is about IPv6


class Outside:
    """The sockets. `links` is what they were last opened for."""

    def __init__(self, ports: Ports, echo_id: int) -> None:
        """OSError if the node network's ports can't be had."""
        self.selector = selectors.DefaultSelector()
        self.links: Mapping[Channel, WireLink] = {}
        self._ports = ports
        self._echo_id = echo_id
        self._packets: dict[Place, PacketSocket] = {}
        self._read_s = time.monotonic()
        self._wires: dict[End, tuple[Channel, ...]] = {}
        self._urgent: dict[End, MessageSocket] = {}
        self._beats: dict[End, MessageSocket] = {}
        self._node_urgent: dict[bool, MessageSocket] = {}
        self._node_beats: dict[bool, MessageSocket] = {}
        for is_v6 in (False, True):
            try:
                self._node_beats[is_v6] = open_node_socket(ports.node_beats, is_v6=is_v6)
                self._node_urgent[is_v6] = open_node_socket(ports.node_urgent, is_v6=is_v6)
            except OSError:
                if not is_v6:  # a host without IPv6 has no more
                    raise
            else:
                self.selector.register(self._node_urgent[is_v6], selectors.EVENT_READ)

    def close(self) -> None:
        """All of them, for good."""
        self.update({})
        for sock in self._node_urgent.values():
            self.selector.unregister(sock)
        for sock in (*self._node_urgent.values(), *self._node_beats.values()):
            sock.close()
        self._node_urgent.clear()
        self._node_beats.clear()

    def update(self, links: Mapping[Channel, WireLink]) -> None:
        """Have sockets for just these; what can't be opened is told, and tried at the next change."""
        self.links = links
        self._wires.clear()
        for wire, link in links.items():
            self._wires[_end(link)] = (*self._wires.get(_end(link), ()), wire)
        wanted = {_place(link) for link in links.values()}
        for place in self._packets.keys() - wanted:
            self.selector.unregister(self._packets[place])
            self._packets.pop(place).close()
        families = {_end(link) for link in links.values()}
        for where in self._urgent.keys() - families:
            self.selector.unregister(self._urgent[where])
            self._urgent.pop(where).close()
            self._beats.pop(where).close()
        for link in links.values():
            try:
                self._open(link)
            except OSError as error:
                log.warning("wire_unopened", wire=link.wire, interface=link.interface, why=error.strerror)

    def _open(self, link: WireLink) -> None:
        place = _place(link)
        if place not in self._packets:
            self._packets[place] = PacketSocket(link.interface, self._echo_id)
            self.selector.register(self._packets[place], selectors.EVENT_READ)
        where = _end(link)
        if where not in self._urgent:
            beats = open_wire_socket(link, self._ports.beats)
            try:
                self._urgent[where] = open_wire_socket(link, self._ports.urgent)
            except OSError:
                beats.close()
                raise
            self._beats[where] = beats
            self.selector.register(self._urgent[where], selectors.EVENT_READ)

    # In.

    def letters(self) -> list[Letter]:
        """Heartbeats, then all other messages that have come in; of a flood the first ones."""
        found = [*self._read(self._beats, self._node_beats), *self._read(self._urgent, self._node_urgent)]
        self._read_s = time.monotonic()
        return found

    def flush(self) -> None:
        """Throw away all that has come in."""
        for ports in (self._beats, self._urgent, self._node_beats, self._node_urgent, self._packets):
            for sock in ports.values():
                while sock.receive() is not None:
                    pass

    def _read(self, wires: Mapping[End, MessageSocket], nodes: Mapping[bool, MessageSocket]) -> Iterator[Letter]:
        """None is older than the last look, whatever the wall clock did."""
        oldest_s = time.monotonic() - self._read_s
        for end, sock in wires.items():
            here = self._wires.get(end, ())
            for data, sender, age_s in sock.receive_all(_MOST_LETTERS):
                channel = wire_of(sender, here)
                if channel is not None:
                    yield Letter(channel, sender, data, min(age_s, oldest_s))
        for sock in nodes.values():
            for data, sender, age_s in sock.receive_all(_MOST_LETTERS):
                yield Letter(NODE_NETWORK, sender, data, min(age_s, oldest_s))

    # Out.

    def send_frame(self, link: WireLink, frame: bytes) -> bool:
        """Whether the kernel took it."""
        sock = self._packets.get(_place(link))
        return sock is not None and sock.send(frame)

    def send_on_wire(self, link: WireLink, data: bytes, to: IP | None, *, beat: bool) -> bool:
        """To one, or to all on the wire."""
        is_v6 = ":" in link.own
        sock = (self._beats if beat else self._urgent).get(_end(link))
        return sock is not None and sock.send(data, to or IP(GROUP_V6 if is_v6 else GROUP_V4), link)

    def send_to_nodes(self, data: bytes, to: Iterable[IP], *, beat: bool) -> None:
        """To each, by whatever route leads there."""
        socks = self._node_beats if beat else self._node_urgent
        for address in to:
            sock = socks.get(":" in address)
            if sock is not None:
                sock.send(data, address)


def _place(link: WireLink) -> Place:
    return link.interface, link.number


def _end(link: WireLink) -> End:
    return _place(link), ":" in link.own
