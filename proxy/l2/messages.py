"""What members tell each other. How it is packed and signed is the wire format's; here it is already proven genuine."""

from collections.abc import Mapping
from enum import Flag
from typing import NamedTuple

import msgspec

from endpointslice.types import IP, NodeName
from proxy.l2.election import NO_HEIRS, Heirs
from proxy.l2.types import NOBODY, Channel, Key, MemberId, Version


class Flags(Flag):
    """What a member says of itself, in every header."""

    NONE = 0
    DRAINING = 1
    RESTARTING = 2  # comes back in a moment: nobody needs its addresses
    STALE = 4  # its proxy is gone, or its table is old
    SHARES = 8  # it answers its part of the clients of addresses that are shared on this channel's wire


class Header(msgspec.Struct, frozen=True, gc=False):
    """The part of a message whose layout never changes: whoever can read nothing else still knows that we live."""

    sender: MemberId
    session: int  # 64 random bits, new at each start
    seq: int  # rises with each message of a session
    clock_s: float  # the sender's; only its run is looked at
    flags: Flags = Flags.NONE
    table_age_s: float = 0.0
    digest: int = 0  # of what the sender owns
    count: int = 0
    formats: tuple[int, int] = (1, 1)  # the oldest and the newest that the sender understands
    newest_key: int = 1  # the newest key that the sender knows


class Beat(msgspec.Struct, frozen=True, gc=False):
    """A heartbeat, of one channel: whom the sender heard there, and how long ago."""

    ages_s: Mapping[MemberId, float]
    mac: str = ""  # the sender's on this wire
    roster: int = 1  # how many members the sender counts on this wire
    wires: frozenset[Channel] = frozenset()  # on the node network: where the sender has an interface
    low: int = 0  # a part of one that is too long for a datagram is complete for members' numbers in [low, high)
    high: int = 0  # 0: it is whole

    def is_about(self, member: MemberId) -> bool:
        """Whether it says how long ago the member was heard, or that it wasn't."""
        return self.high == 0 or self.low <= member < self.high


class ClaimState(msgspec.Struct, frozen=True):
    """One key in a claim. `quiet`: clients of the old owner aren't told yet."""

    key: Key
    version: Version
    heirs: Heirs = NO_HEIRS
    quiet: bool = False
    released: bool = False  # the owner let go: nobody has it


class Claims(msgspec.Struct, frozen=True):
    """What the sender owns, or knows of others (then the version's owner is another).

    It is complete for hashes of keys in [low, high): what the sender owned there and isn't listed is nobody's now. So
    a long list may be cut into parts of which each stands alone.
    """

    entries: tuple[ClaimState, ...]
    low: int = 0
    high: int = 0


class Want(msgspec.Struct, frozen=True):
    """Asks for all of the receiver's claims: the digest differs."""


class Offer(msgspec.Struct, frozen=True):
    """The owner gives addresses away; the receiver claims them with a higher epoch, or says nothing."""

    entries: tuple[tuple[Key, int], ...]  # with the owner's epoch
    quiet: bool = True  # the old owner goes on answering its cached clients
    grace_s: float = 0.0


class Release(msgspec.Struct, frozen=True):
    """Asks an owner that is heard on the node network, but not on the wire, whether it agrees to be replaced."""

    wire: Channel


class Challenge(msgspec.Struct, frozen=True):
    """Asks an unknown session to prove that it lives now."""

    nonce: int


class Answer(msgspec.Struct, frozen=True):
    """The proof, with the sender's name."""

    nonce: int
    node: NodeName


class Bye(msgspec.Struct, frozen=True):
    """The sender leaves for good, and owns nothing any more."""


class Asker(NamedTuple):
    """A client of a shared address, and how long ago it asked, in whole seconds where it was packed."""

    ip: IP
    mac: str
    age_s: float


class Clients(msgspec.Struct, frozen=True):
    """Clients of a shared address that the sender answers, for members that have come since they asked."""

    key: Key
    entries: tuple[Asker, ...]


Body = Beat | Claims | Want | Offer | Release | Challenge | Answer | Bye | Clients


class Message(msgspec.Struct, frozen=True, gc=False):
    """`body` None: of a format that isn't understood; it is a sign of life."""

    header: Header
    body: Body | None
    to: MemberId = NOBODY  # NOBODY: all on the channel
