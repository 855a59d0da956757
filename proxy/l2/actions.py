"""What an announcer is to do, in this order."""

from enum import StrEnum

import msgspec

from endpointslice.types import IP
from proxy.l2.messages import Message
from proxy.l2.types import NOBODY, Channel, Key, MemberId


class Send(msgspec.Struct, frozen=True):
    """A message, on a wire by multicast, on the node network to each member; or to one."""

    channel: Channel
    message: Message
    key_id: int = 1  # which key signs it
    format: int = 1  # which layout: the newest that all members understand


class Keep(msgspec.Struct, frozen=True):
    """Heartbeats to be sent at a time, if the process isn't late then; instead of those that are kept, if any are."""

    sends: tuple[Send, ...]
    at_s: float


class Look(msgspec.Struct, frozen=True):
    """Ask by unicast ARP (or NDP) whether `mac` still answers for the address."""

    key: Key
    mac: str


class Probe(msgspec.Struct, frozen=True):
    """Ask by broadcast who answers for an address that nobody owns (RFC 5227)."""

    key: Key


class Echo(msgspec.Struct, frozen=True):
    """An ICMP echo to the wire's gateway, from our own address or from one that we hold."""

    wire: Channel
    gateway: IP
    vip: IP | None = None


class Reply(msgspec.Struct, frozen=True):
    """Answer the request that was the event, with this wire's own MAC."""

    key: Key


class Announce(msgspec.Struct, frozen=True):
    """A gratuitous packet; the first round has the request form only, later ones both (spec: storm control)."""

    key: Key
    both: bool = True
    refresh: bool = False  # the one of each minute


class Owned(msgspec.Struct, frozen=True):
    """From now on the address is answered for: join its multicast group, publish the owner."""

    key: Key


class Withdraw(msgspec.Struct, frozen=True):
    """From now on it isn't."""

    key: Key


class Tell(msgspec.Struct, frozen=True):
    """Tell one client, by unicast, that a shared address is ours."""

    key: Key
    client: IP
    mac: str  # the client's


class FlushSockets(msgspec.Struct, frozen=True):
    """Throw away unread what came in while the process stood still."""


class SetTimer(msgspec.Struct, frozen=True):
    """The next Tick is due then, by the clock of `now`."""

    at_s: float


class Note(StrEnum):
    """What is worth telling a person; stable codes, for logs, events and metrics."""

    MEMBER_JOINED = "member-joined"
    MEMBER_SILENT = "member-silent"
    MEMBER_BACK = "member-back"
    MEMBER_LEFT = "member-left"
    MEMBER_FORGOTTEN = "member-forgotten"  # silent for a day: it counts no more
    SAME_NAME = "same-name"  # another process sends under our own name
    PARTITION = "partition"  # a silent member answers on the wire: heartbeats are lost, nothing moves
    WIRE_BLIND = "wire-blind"  # no member was ever heard on the wire: the node network judges
    LATE = "late"  # this process stood still
    CLOCK_STOOD = "clock-stood"  # so did its clock
    SUSPENDED = "suspended"
    LISTENING = "listening"
    MAJORITY_LOST = "majority-lost"
    MAJORITY_BACK = "majority-back"
    TAKEN = "taken"
    LAST_RESORT = "last-resort"
    GIVEN = "given"
    RECEIVED = "received"
    NOBODY_TAKES = "nobody-takes"  # offered to all, and kept
    RELEASED = "released"
    REPLACED = "replaced"  # a newer claim was heard
    YIELDED = "yielded"  # the gateway knows another owner
    DEFENDED = "defended"
    GATEWAY_SILENT = "gateway-silent"  # answers no echo: doubt can't be settled by it
    ADDRESS_CONFLICT = "address-conflict"  # a foreign host answers
    DRAINED = "drained"
    SHARED = "shared"  # members came or went for an address that several share
    SHARE_ROUTED = "share-routed"  # a router asks for it: all behind it come to one node; ECMP or BGP would spread them
    NOT_SHARED = "not-shared"  # an advertisement asks for it, and something contradicts it


class Report(msgspec.Struct, frozen=True):
    """One of the above."""

    note: Note
    key: Key | None = None
    member: MemberId = NOBODY
    detail: str = ""


Action = (
    Send | Keep | Look | Probe | Echo | Reply | Announce | Owned | Withdraw | Tell | FlushSockets | SetTimer | Report
)
