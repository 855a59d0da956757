"""EFFECT: one announcer: events into the machine, its actions out. Called by one thread only."""

import time
from collections.abc import Callable, Iterable, Mapping

from endpointslice.types import IP, NodeName
from proxy.announcer import metrics
from proxy.announcer.arp import Arp, parse_arp, read_arp
from proxy.announcer.deeds import Deeds, Parts
from proxy.announcer.echo import Echo as EchoPacket
from proxy.announcer.echo import parse_reply
from proxy.announcer.ethernet import Drop, EtherType, Frame, format_mac, parse_frame
from proxy.announcer.feed_client import Gone, News
from proxy.announcer.letters import Letter, order_letters
from proxy.announcer.moment import Moment
from proxy.announcer.ndp import Neighbour, parse_ndp, read_ndp
from proxy.announcer.netlink import Links
from proxy.announcer.orders import read_orders
from proxy.announcer.packets import Captured, PacketSocket
from proxy.announcer.served import Said, TableMaker, locate, named_interfaces, used_wires
from proxy.announcer.sightings import Sighting
from proxy.announcer.speech import Known, Question
from proxy.announcer.wires import WireLink, find_wires
from proxy.l2.events import (
    ArpKind,
    ArpSeen,
    EchoReply,
    Event,
    LinkChanged,
    ProxyGone,
    Received,
    TableChanged,
    TableFresh,
    WireActive,
)
from proxy.l2.machine import step
from proxy.l2.plain import hear_plain
from proxy.l2.state import State
from proxy.l2.types import Channel


class Announcer:
    """The state, and what it says."""

    def __init__(self, state: State, parts: Parts, clock: Callable[[], float] = time.monotonic) -> None:
        self.state = state
        self._parts = parts
        self._clock = clock
        self._deeds = Deeds(parts)
        self._links = Links((), ())
        self._found: Mapping[Channel, WireLink] = {}  # all wires that there are
        self._used: frozenset[Channel] = frozenset()  # those that ever had an address
        self._said = Said({})
        self._tables = TableMaker()
        self._members: frozenset[NodeName] = frozenset()
        self._wire_of: dict[IP, Channel] = {}
        self._active_s: dict[str, float] = {}

    def resume(self, state: State) -> None:
        """Go on with another process's state; its wires are opened when the kernel's links are taken."""
        self.state = state
        self._used = frozenset(state.wires)
        self._wire_of = {key.vip: key.wire for key in state.table.vips}

    def step(self, event: Event, *, more: bool = False) -> None:
        """One step of the machine, and all that it wants done; `more`: sockets may hold what is older than now."""
        now = self._clock()
        self.state, actions = step(self.state, now, event, more=more)
        for action in actions:
            self._deeds.do(action, self.state, now)

    # What this node's own parts say.

    def take_links(self, links: Links) -> None:
        """The kernel's interfaces changed."""
        self._links = links
        self._update_wires()

    def take_news(self, news: News | Gone) -> None:
        """From the proxy, or of it."""
        metrics.PROXY_UP.set(isinstance(news, News))
        if isinstance(news, Gone):
            self.step(ProxyGone())
            return
        metrics.TABLE_AGE.set(news.age_s)
        if news.said is None:
            self.step(TableFresh(news.age_s))
        else:
            self._said = news.said
            self._update_wires()
            self._update_table(news.age_s)
        for event in read_orders(self.state, self._said.around):
            self.step(event)

    def _update_wires(self) -> None:
        """Sockets first, then the machine: it speaks at once."""
        named = named_interfaces(self._said.around, self.state.settings.node)
        found = find_wires(self._links.interfaces, self._links.gateways, self._parts.gateways, named)
        known = self._wire_of.keys() if found.keys() == self._found.keys() else frozenset()  # thousands, mostly
        self._found = found
        self._used |= used_wires(self._said.served.keys() - known, found)
        before = self._parts.outside.links
        after = {wire: self._found[wire] for wire in self._used if wire in self._found}
        if before == after:
            return
        for number in {link.number for link in before.values()} - {link.number for link in after.values()}:
            self._deeds.forget_groups(number)
        self._parts.outside.update(after)
        for vip, wire in self.state.mine | self.state.shared:
            if wire in after and before.get(wire) != after[wire]:
                self._deeds.join(vip, after[wire])
        for wire, link in after.items():
            if before.get(wire) != link:
                self.step(LinkChanged(wire, format_mac(link.mac), link.carrier, link.gateway))
        for wire in before.keys() - after.keys():
            self.step(LinkChanged(wire, gone=True))

    def _update_table(self, age_s: float) -> None:
        self._members = frozenset(member.node for member in self.state.members.values() if member.node)
        here = locate(self.state.settings.node, self._found, self._used)
        here = here._replace(members=self._members, options=self._parts.options)
        table = self._tables.make(self._said, here)
        self._wire_of = {key.vip: key.wire for key in table.vips}
        self.step(TableChanged(table, age_s))

    def note_members(self) -> None:
        """Members that came are candidates from now on."""
        new = any(member.node and member.node not in self._members for member in self.state.members.values())
        if self._said.served and new:
            self._update_table(max(0.0, self._clock() - self.state.fresh_s))

    def moment(self) -> Moment:
        """What is described to people, also by another thread: with thousands of addresses that takes long."""
        return Moment(self.state, self._clock(), self._said, self._wire_of)

    def take_letters(self, letters: Iterable[Letter]) -> None:
        """Datagrams. Heartbeats that say nothing new are taken in together."""
        told, refused = order_letters(letters, self._parts.speech.keys)
        for reason, count in refused.items():
            metrics.REFUSED.labels(reason.value).inc(count)
        events = [Received(one.letter.channel, one.message, one.letter.age_s) for one in told]
        at = 0
        while at < len(told):
            self.state, plain = hear_plain(self.state, self._clock(), events, at)
            for (channel, address, _data, _age_s), message in told[at : at + plain]:
                self._parts.book.note(channel, message.header.sender, address)
            at += plain
            if at < len(told):
                self._hear(told[at].letter, events[at])
                at += 1

    def _hear(self, letter: Letter, event: Received) -> None:
        (channel, address, _data, _age_s), header = letter, event.message.header
        self._deeds.reply_to = channel, header.sender, address
        self.step(event, more=True)
        self._deeds.reply_to = None
        member = self.state.members.get(header.sender)
        if member is not None and member.seqs.get(channel) == header.seq:
            self._parts.book.note(channel, header.sender, address)

    def take_frame(self, sock: PacketSocket, captured: Captured) -> None:
        """A frame of a wire."""
        frame = parse_frame(captured.data)
        if isinstance(frame, Drop):
            return
        self._note_active(sock.interface)
        if frame.kind == EtherType.ARP:
            arp = parse_arp(frame)
            if isinstance(arp, Arp):
                self._see(sock, arp, read_arp(arp, broadcast=frame.is_group), captured.age_s)
            return
        if frame.kind == EtherType.IPV6:
            neighbour = parse_ndp(frame)
            if isinstance(neighbour, Neighbour):
                self._see(sock, neighbour, read_ndp(neighbour), captured.age_s)
                return
        self._hear_echo(sock, frame)

    def _see(self, sock: PacketSocket, question: Question, said: tuple[Sighting, ...], age_s: float) -> None:
        for sighting in said:
            if any(sighting.mac == link.mac for link in self._parts.outside.links.values()):
                continue
            self._note_gateway(sock, sighting)
            wire = self._wire_of.get(sighting.ip)
            link = self._parts.outside.links.get(wire) if wire is not None else None
            if wire is None or link is None or link.interface != sock.interface:
                continue
            self._deeds.question = question
            kind, ip, mac, broadcast, asker = sighting
            self.step(ArpSeen(wire, kind, ip, format_mac(mac), broadcast, age_s, asker), more=True)
            self._deeds.question = None

    def _note_gateway(self, sock: PacketSocket, sighting: Sighting) -> None:
        if sighting.kind is ArpKind.REQUEST:
            return
        for link in self._parts.outside.links.values():
            if link.gateway == sighting.ip and link.interface == sock.interface:
                self._parts.book.gateways[link.wire] = Known(sighting.mac, self._clock())

    def _hear_echo(self, sock: PacketSocket, frame: Frame) -> None:
        echo = parse_reply(frame)
        if not isinstance(echo, EchoPacket) or echo.identifier != self._parts.echo_id:
            return
        for link in self._parts.outside.links.values():
            if link.interface != sock.interface or link.gateway != echo.source:
                continue
            if echo.destination == link.own:
                self.step(EchoReply(link.wire), more=True)
            elif self._wire_of.get(echo.destination) == link.wire:
                self.step(EchoReply(link.wire, echo.destination), more=True)

    def _note_active(self, interface: str) -> None:
        """Said at most once in a quarter of an interval."""
        now = self._clock()
        if now - self._active_s.get(interface, 0.0) < self.state.settings.timing.interval_s / 4:
            return
        self._active_s[interface] = now
        for link in self._parts.outside.links.values():
            if link.interface == interface:
                self.step(WireActive(link.wire), more=True)

    def note_counted(self, packets: dict[str, int], before: dict[str, int]) -> None:
        """Interfaces whose counter of received packets has risen are no dead wires."""
        for name, count in packets.items():
            if count != before.get(name, count):
                self._note_active(name)
