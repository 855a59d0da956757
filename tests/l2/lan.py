"""What reaches whom: cuts of one way or both, of messages or of every frame, and links that are out."""

import random
from collections.abc import Iterable
from enum import StrEnum

from proxy.l2.types import NODE_NETWORK, Channel

WIRE = Channel("192.0.2.0/24")
WIRES = (WIRE, Channel("198.51.100.0/24"), Channel("203.0.113.0/24"))
GATEWAY = "gateway"


class Frames(StrEnum):
    """What is sent."""

    MESSAGE = "message"
    ARP = "arp"


class Lan:
    """Wires and the node network, which is the first of them unless `separate`."""

    def __init__(self, chance: random.Random, *, separate: bool, isolated: bool = False) -> None:
        self.chance = chance
        self.separate = separate
        self.isolated = isolated  # members from each other, on wires
        self.loss = 0.0
        self.deaf: set[tuple[str, str, Channel]] = set()  # (from, to, channel): no message passes
        self.cut: set[tuple[str, str, Channel]] = set()  # no frame passes
        self.unplugged: set[str] = set()  # from the first wire: neither peers nor clients hear it
        self.off_network: set[str] = set()  # from a separate node network

    def passes(self, sender: str, receiver: str, channel: Channel, frames: Frames) -> bool:
        """Whether one frame gets through now."""
        place = WIRE if channel == NODE_NETWORK and not self.separate else channel
        way = (sender, receiver, place)
        if way in self.cut or (frames is Frames.MESSAGE and way in self.deaf):
            return False
        if self.isolated and place != NODE_NETWORK and not {sender, receiver} & {"client", GATEWAY}:
            return False
        if self.is_out(sender, place) or self.is_out(receiver, place):
            return False
        return not (self.loss and self.chance.random() < self.loss)

    def is_out(self, name: str, place: Channel) -> bool:
        """Whether its cable there is out."""
        return name in self.off_network if place == NODE_NETWORK else place == WIRE and name in self.unplugged

    def delay_s(self) -> float:
        """From 0.2 to 1.5 ms: what is sent in one moment arrives in any order."""
        return 0.0002 + 0.0013 * self.chance.random()

    def separate_groups(self, these: Iterable[str], those: Iterable[str], *, only_messages: bool = False) -> None:
        """Cut both ways, on every channel."""
        ways = self.deaf if only_messages else self.cut
        others = list(those)
        for one in these:
            for other in others:
                for channel in (*WIRES, NODE_NETWORK):
                    ways |= {(one, other, channel), (other, one, channel)}

    def heal(self) -> None:
        """All of it."""
        self.deaf.clear()
        self.cut.clear()
        self.unplugged.clear()
        self.off_network.clear()
        self.loss = 0.0
