"""Members that say what members say, without deciding anything: each message as the real ones pack it. No I/O.

They hear everybody at once and are never silent. Of the addresses they own what one deal of all of them gives each.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from e2e.lan.scale.plan import KEY, WIRE, Peer
from endpointslice.types import IP
from proxy.announcer.datagram import Signing, pack_datagram
from proxy.announcer.parts import split_message
from proxy.l2.candidates import Candidate, Vip
from proxy.l2.election import Standing, spread
from proxy.l2.messages import Answer, Beat, Body, Challenge, Claims, ClaimState, Header, Message, Want
from proxy.l2.types import MASK, NOBODY, NODE_NETWORK, Channel, Key, MemberId, Version, claim_digest, member_id

_EPOCH = 1
_AGE_S = 0.05
_SIGNING = Signing({1: KEY}, 1)
_NOTHING = (0, 0)


class Puppet:
    """One of them."""

    def __init__(self, peer: Peer, members: Sequence[Peer], mac: str) -> None:
        self.peer = peer
        self.id = member_id(peer.node)
        self.claims: tuple[ClaimState, ...] = ()
        self.beats = 0  # how often it had one to send
        self._session = self.id ^ MASK
        self._seq = 0
        self._mac = mac
        self._ages_s = {member_id(other.node): _AGE_S for other in members if other != peer}
        self._roster = len(members)
        self._sum = _NOTHING  # digest and size of the claims

    def claim(self, keys: Iterable[Key]) -> None:
        """Own these from now on."""
        version = Version(_EPOCH, self.id)
        self.claims = tuple(ClaimState(key, version) for key in keys)
        digest = sum(claim_digest(state.key, version) for state in self.claims) & MASK
        self._sum = digest, len(self.claims)

    def yield_keys(self, keys: AbstractSet[Key]) -> None:
        """Another claims them with a higher epoch, as one that was late to hear of ours does."""
        if any(claim.key in keys for claim in self.claims):
            self.claim(claim.key for claim in self.claims if claim.key not in keys)

    def beat(self, channel: Channel, now: float) -> list[bytes]:
        """A heartbeat."""
        wires = frozenset([WIRE]) if channel == NODE_NETWORK else frozenset()
        mac = "" if channel == NODE_NETWORK else self._mac
        return self._pack(Beat(self._ages_s, mac, self._roster, wires), channel, now)

    def tell_claims(self, channel: Channel, now: float) -> list[bytes]:
        """What it has come to own."""
        return self._pack(Claims(self.claims), channel, now) if self.claims else []

    def answer(self, message: Message, channel: Channel, now: float) -> list[bytes]:
        """To a question; nothing to all else."""
        match message.body:
            case Challenge(nonce):
                return self._pack(Answer(nonce, self.peer.node), channel, now, message.header.sender)
            case Want():
                return self._pack(Claims(self.claims, 0, MASK + 1), channel, now, message.header.sender)
            case _:
                return []

    def _pack(self, body: Body, channel: Channel, now: float, to: MemberId = NOBODY) -> list[bytes]:
        self._seq += 1
        digest, count = self._sum
        header = Header(self.id, self._session, self._seq, now, digest=digest, count=count)
        packed = (pack_datagram(part, channel, _SIGNING) for part in split_message(Message(header, body, to)))
        return [data for data in packed if data is not None]


def deal(members: Sequence[Peer], vips: Iterable[IP]) -> Mapping[MemberId, list[Key]]:
    """What the election gives each, if all are equal; as the announcer deals it, too."""
    rows = tuple(Candidate(peer.node) for peer in members)
    wanted = [Vip(Key(vip, WIRE), rows[0], rows[1:]) for vip in vips]
    owned: dict[MemberId, list[Key]] = {member_id(peer.node): [] for peer in members}
    for key, owner in spread(wanted, {member_id(peer.node): Standing() for peer in members}).items():
        owned[owner].append(key)
    return owned
