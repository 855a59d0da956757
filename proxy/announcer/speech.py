"""EFFECT: how the announcer's actions become packets and datagrams."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from endpointslice.types import IP
from proxy.announcer import metrics
from proxy.announcer.arp import Arp, announce_arp, answer_arp, ask_arp, tell_arp
from proxy.announcer.datagram import Signing, pack_datagram
from proxy.announcer.echo import Echo as EchoPacket
from proxy.announcer.echo import Macs, pack_request
from proxy.announcer.ethernet import parse_mac
from proxy.announcer.ndp import Neighbour, announce_ndp, answer_ndp, ask_ndp, tell_ndp
from proxy.announcer.outside import Outside
from proxy.announcer.parts import split_message
from proxy.l2.actions import Announce, Echo, Keep, Look, Probe, Send, Tell
from proxy.l2.messages import Beat, Claims, Want
from proxy.l2.types import LATER, NOBODY, NODE_NETWORK, Channel, MemberId

Question = Arp | Neighbour
_BEATS, _OTHERS = metrics.SENT.labels("beat"), metrics.SENT.labels("other")
GATEWAY_AGE_S = 5.0  # after that its MAC is asked for again


class Known(NamedTuple):
    """Where somebody was last heard."""

    mac: bytes
    at_s: float


class AddressBook:
    """Where members and gateways are reached, as they were heard."""

    def __init__(self, peers: Iterable[IP] = ()) -> None:
        self._peers = frozenset(peers)
        self._members: dict[tuple[Channel, MemberId], IP] = {}
        self._nodes: dict[MemberId, IP] = {}
        self.gateways: dict[Channel, Known] = {}

    def note(self, channel: Channel, member: MemberId, address: IP) -> None:
        """A genuine message came from there. Who is heard on a wire may be heard at that address by routes, too."""
        self._members[channel, member] = address
        if channel == NODE_NETWORK or member not in self._nodes:
            self._nodes[member] = address

    def find(self, channel: Channel, member: MemberId) -> IP | None:
        """One member's address on a channel."""
        return self._nodes.get(member) if channel == NODE_NETWORK else self._members.get((channel, member))

    def nodes(self) -> frozenset[IP]:
        """Everybody on the node network: who was named at the start, and who was heard."""
        return self._peers | frozenset(self._nodes.values())


class Speech:
    """Sends; what can't be sent now is not kept: rules send again by their own clocks."""

    def __init__(self, outside: Outside, book: AddressBook, keys: Mapping[int, bytes], echo_id: int) -> None:
        self.keys = keys
        self._outside = outside
        self.book = book
        self._echo_id = echo_id
        self._sequence = 0
        self._kept: list[tuple[Channel, bytes]] = []
        self.kept_s = LATER  # when that is to be sent

    def send(self, action: Send, reply_to: tuple[Channel, MemberId, IP] | None) -> None:
        """A message, in as many datagrams as it takes; `reply_to`: who is being answered, and where."""
        channel = action.channel
        beat = isinstance(action.message.body, Beat)
        parts = self._pack(action)
        # After a cut the kernel asks for a neighbour's MAC once a second, which is too late: who comes back would take
        # what it had before it hears of those that have it now. Who isn't meant reads no more than the header.
        aloud = channel != NODE_NETWORK and len(parts) == 1 and isinstance(action.message.body, Want | Claims)
        to = None if aloud else self._receiver(channel, action.message.to, reply_to)
        for data in parts:
            (_BEATS if beat else _OTHERS).inc()
            self._post(data, channel, to, beat=beat)

    def keep(self, action: Keep) -> None:
        """Signed now, as after a sleep all of it would take ten times as long."""
        self._kept = [(send.channel, data) for send in action.sends for data in self._pack(send)]
        self.kept_s = action.at_s if self._kept else LATER

    def send_kept(self, *, late: bool) -> None:
        """What is kept, whose time has come; late: another one is written now, and this is thrown away."""
        kept, self._kept, self.kept_s = self._kept, [], LATER
        for channel, data in kept if not late else ():
            _BEATS.inc()
            self._post(data, channel, None, beat=True)

    def _pack(self, action: Send) -> list[bytes]:
        signing = Signing(self.keys, action.key_id, action.format)
        packed = [pack_datagram(part, action.channel, signing) for part in split_message(action.message)]
        if None in packed:
            metrics.REFUSED.labels("no-key-to-send").inc()
        return [data for data in packed if data is not None]

    def _receiver(self, channel: Channel, to: MemberId, reply_to: tuple[Channel, MemberId, IP] | None) -> IP | None:
        if to == NOBODY:
            return None
        if reply_to is not None and reply_to[:2] == (channel, to):
            return reply_to[2]
        return self.book.find(channel, to)

    def _post(self, data: bytes, channel: Channel, to: IP | None, *, beat: bool) -> None:
        if channel == NODE_NETWORK:
            self._outside.send_to_nodes(data, (to,) if to is not None else self.book.nodes(), beat=beat)
        elif (link := self._outside.links.get(channel)) is not None:
            self._outside.send_on_wire(link, data, to, beat=beat)

    def reply(self, channel: Channel, question: Question) -> None:
        """Answer with the MAC of the wire on which it was asked."""
        link = self._outside.links.get(channel)
        if link is None:
            return
        if isinstance(question, Arp):
            self._outside.send_frame(link, answer_arp(question, link.mac))
            metrics.REPLIES.labels("arp").inc()
        else:
            self._outside.send_frame(link, answer_ndp(question, link.mac))
            metrics.REPLIES.labels("ndp").inc()

    def announce(self, action: Announce) -> None:
        """Tell everybody on the wire."""
        vip, wire = action.key
        link = self._outside.links.get(wire)
        if link is None:
            return
        is_v6 = ":" in vip
        frames = (announce_ndp(vip, link.mac),) if is_v6 else announce_arp(vip, link.mac, both=action.both)
        for frame in frames:
            self._outside.send_frame(link, frame)
            metrics.ANNOUNCEMENTS.labels("ndp" if is_v6 else "arp", "refresh" if action.refresh else "change").inc()

    def tell(self, action: Tell) -> None:
        """One client, and nobody else."""
        vip, wire = action.key
        link, to = self._outside.links.get(wire), parse_mac(action.mac)
        if link is None or to is None:
            return
        tell = tell_ndp if ":" in vip else tell_arp
        self._outside.send_frame(link, tell(vip, link.mac, client=action.client, to=to))
        metrics.TOLD.labels("ndp" if ":" in vip else "arp").inc()

    def ask(self, action: Look | Probe) -> None:
        """A look goes to one MAC from our own address; a probe to everybody, and in ARP from no address."""
        vip, wire = action.key
        link = self._outside.links.get(wire)
        to = parse_mac(action.mac) if isinstance(action, Look) else None
        if link is None or (isinstance(action, Look) and to is None):
            return
        if ":" in vip:
            frame = ask_ndp(vip, link.mac, own=link.own, to=to)
        else:
            frame = ask_arp(vip, link.mac, own=link.own, to=to) if to else ask_arp(vip, link.mac, own=None)
        self._outside.send_frame(link, frame)

    def echo(self, action: Echo, now: float) -> None:
        """To the gateway's MAC; until that is known, the question for it."""
        link = self._outside.links.get(action.wire)
        if link is None or (":" in action.gateway) != (":" in link.own):
            return
        gateway = self.book.gateways.get(action.wire)
        if gateway is None or now - gateway.at_s > GATEWAY_AGE_S:
            ask = ask_ndp if ":" in action.gateway else ask_arp
            self._outside.send_frame(link, ask(action.gateway, link.mac, own=link.own))
        if gateway is None:
            return
        self._sequence = (self._sequence + 1) & 0xFFFF
        packet = EchoPacket(action.vip or link.own, action.gateway, self._echo_id, self._sequence)
        self._outside.send_frame(link, pack_request(packet, Macs(link.mac, gateway.mac)))
