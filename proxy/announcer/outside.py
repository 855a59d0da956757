"""EFFECT: all sockets of the announcer, opened and closed as wires come and go."""

import selectors
from collections.abc import Iterator, Mapping

import structlog

from endpointslice.types import IP
from proxy.announcer.beat_sockets import (
    GROUP_V4,
    GROUP_V6,
    Arrived,
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


class Outside:
    """The sockets. `links` is what they were last opened for."""

    def __init__(self, ports: Ports, echo_id: int) -> None:
        """OSError if the node network's ports can't be had."""
        self.selector = selectors.DefaultSelector()
        self.links: Mapping[Channel, WireLink] = {}
        self._ports = ports
        self._echo_id = echo_id
        self._packets: dict[Place, PacketSocket] = {}
        self._urgent: dict[tuple[Place, bool], MessageSocket] = {}
        self._beats: dict[tuple[Place, bool], MessageSocket] = {}
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
        wanted = {_place(link) for link in links.values()}
        for place in self._packets.keys() - wanted:
            self.selector.unregister(self._packets[place])
            self._packets.pop(place).close()
        families = {(_place(link), ":" in link.own) for link in links.values()}
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
        where = place, ":" in link.own
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

    def letters(self) -> Iterator[Letter]:
        """Heartbeats, then all other messages that have come in; of a flood the first ones."""
        yield from self._read(self._beats, self._node_beats)
        yield from self._read(self._urgent, self._node_urgent)

    def frames(self) -> Iterator[PacketSocket]:
        """The packet sockets, to be read until they are empty."""
        yield from tuple(self._packets.values())

    def flush(self) -> None:
        """Throw away all that has come in."""
        for ports in (self._beats, self._urgent, self._node_beats, self._node_urgent, self._packets):
            for sock in ports.values():
                while sock.receive() is not None:
                    pass

    def _read(
        self, wires: Mapping[tuple[Place, bool], MessageSocket], nodes: Mapping[bool, MessageSocket]
    ) -> Iterator[Letter]:
        for (place, is_v6), sock in tuple(wires.items()):
            for arrived in _receive(sock):
                channel = self._channel(place, arrived.sender, is_v6=is_v6)
                if channel is not None:
                    yield Letter(channel, arrived.sender, arrived.data)
        for sock in nodes.values():
            for arrived in _receive(sock):
                yield Letter(NODE_NETWORK, arrived.sender, arrived.data)

    def _channel(self, place: Place, sender: IP, *, is_v6: bool) -> Channel | None:
        """Which of the interface's wires the sender is on."""
        here = [link.wire for link in self.links.values() if _place(link) == place and (":" in link.own) == is_v6]
        return wire_of(sender, here)

    # Out.

    def send_frame(self, link: WireLink, frame: bytes) -> bool:
        """Whether the kernel took it."""
        sock = self._packets.get(_place(link))
        return sock is not None and sock.send(frame)

    def send_on_wire(self, link: WireLink, data: bytes, to: IP | None, *, beat: bool) -> bool:
        """To one, or to all on the wire."""
        is_v6 = ":" in link.own
        sock = (self._beats if beat else self._urgent).get((_place(link), is_v6))
        return sock is not None and sock.send(data, to or IP(GROUP_V6 if is_v6 else GROUP_V4), link)

    def send_to_node(self, data: bytes, to: IP, *, beat: bool) -> bool:
        """By whatever route leads there."""
        sock = (self._node_beats if beat else self._node_urgent).get(":" in to)
        return sock is not None and sock.send(data, to)


def _place(link: WireLink) -> Place:
    return link.interface, link.number


def _receive(sock: MessageSocket) -> Iterator[Arrived]:
    for _ in range(_MOST_LETTERS):
        arrived = sock.receive()
        if arrived is None:
            return
        yield arrived
