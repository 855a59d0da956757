"""What happens to an announcer. Each is a value that the daemon, the simulator or a recording can make."""

from enum import StrEnum

import msgspec

from endpointslice.types import IP
from proxy.l2.candidates import Table
from proxy.l2.messages import Message
from proxy.l2.types import Channel, DrainCause, Key, MemberId


class Tick(msgspec.Struct, frozen=True):
    """Time has passed. The latest a tick may come is said by SetTimer."""


class Received(msgspec.Struct, frozen=True, gc=False):
    """A genuine message."""

    channel: Channel
    message: Message
    age_s: float = 0.0  # since it came in: heartbeats wait until they are read


class ArpKind(StrEnum):
    """ARP's and NDP's kinds in one: a neighbour solicitation asks, an advertisement replies."""

    REQUEST = "request"
    REPLY = "reply"
    GRATUITOUS = "gratuitous"  # tells everybody


class ArpSeen(msgspec.Struct, frozen=True):
    """A frame about one of the addresses, from another host."""

    wire: Channel
    kind: ArpKind
    vip: IP
    mac: str  # of the sender
    broadcast: bool = True  # False: to our own MAC
    age_s: float = 0.0  # since the kernel took it in
    asker: IP | None = None  # a request's sender; None: it names none, as a probe


class WireActive(msgspec.Struct, frozen=True):
    """Any other frame came in; said at most once in a quarter of an interval."""

    wire: Channel


class EchoReply(msgspec.Struct, frozen=True):
    """The gateway answered an echo; `vip` None: one from our own address."""

    wire: Channel
    vip: IP | None = None


class LinkChanged(msgspec.Struct, frozen=True):
    """An interface of ours, as it is now."""

    wire: Channel
    mac: str = ""
    carrier: bool = True
    gateway: IP | None = None
    gone: bool = False  # no interface is on that subnet any more


class TableChanged(msgspec.Struct, frozen=True):
    """The proxy's table, whole, as of now; `age_s` is how old the API's part of it is."""

    table: Table
    age_s: float = 0.0


class TableFresh(msgspec.Struct, frozen=True):
    """The table stands, and the proxy's view of the API is `age_s` old."""

    age_s: float = 0.0


class ProxyGone(msgspec.Struct, frozen=True):
    """The proxy doesn't answer: what it last reported goes on."""


class DrainAsked(msgspec.Struct, frozen=True):
    """Give everything away, and take nothing."""

    cause: DrainCause = DrainCause.ASKED


class DrainEnded(msgspec.Struct, frozen=True):
    """One cause less; the node takes part again once there is none."""

    cause: DrainCause = DrainCause.ASKED


class RestartAsked(msgspec.Struct, frozen=True):
    """The process is about to end, and another follows: tell the others to wait."""


class StopAsked(msgspec.Struct, frozen=True):
    """The member leaves for good: stop answering, say goodbye."""


class MoveAsked(msgspec.Struct, frozen=True):
    """Somebody wants an address elsewhere."""

    key: Key
    to: MemberId


class MemberDeleted(msgspec.Struct, frozen=True):
    """Its Node was deleted: it counts no more."""

    member: MemberId


Event = (
    Tick
    | Received
    | ArpSeen
    | WireActive
    | EchoReply
    | LinkChanged
    | TableChanged
    | TableFresh
    | ProxyGone
    | DrainAsked
    | DrainEnded
    | RestartAsked
    | StopAsked
    | MoveAsked
    | MemberDeleted
)
