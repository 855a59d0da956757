"""What an announcer knows. Frozen values; a step makes new ones, and shares what it left alone."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from endpointslice.types import IP, NodeName
from proxy.l2.candidates import Table
from proxy.l2.clocks import Clock
from proxy.l2.election import NO_HEIRS, Heirs
from proxy.l2.messages import Flags
from proxy.l2.shares import Share
from proxy.l2.types import (
    LATER,
    NEVER,
    NOBODY,
    UNCLAIMED,
    Channel,
    DrainCause,
    Key,
    MemberId,
    Mine,
    Settings,
    Version,
    member_id,
)
from proxy.l2.words import Words


class Path(msgspec.Struct, frozen=True, gc=False):
    """What is heard of one member on one channel."""

    heard_s: float = NEVER  # its last message
    names_me: bool = False  # its last heartbeat said that it hears me
    ages_s: Mapping[MemberId, float] = msgspec.field(default_factory=dict)  # what that said of others
    beat_s: float = NEVER  # when it came
    roster: int = 1
    shares: bool = False  # it says that it answers its part of clients of shared addresses
    mac: str = ""
    seen_s: float = NEVER  # its last sign on the wire that isn't a message
    looks: int = 0  # sent since its last sign of life
    look_s: float = NEVER
    silent: bool = True  # for the time of detection; said once
    release_s: float = NEVER  # when it was last asked to let go

    @property
    def sign_s(self) -> float:
        """The last sign of life."""
        return max(self.heard_s, self.seen_s)


NO_PATH = Path()


class Member(msgspec.Struct, frozen=True, gc=False):
    """Another announcer."""

    id: MemberId
    node: NodeName = NodeName("")
    session: int | None = None  # None: none was accepted yet
    past: frozenset[int] = frozenset()  # sessions that are over
    seqs: Mapping[Channel, int] = msgspec.field(default_factory=dict)
    words: Words = ()  # the newest, of those that may be heard late
    asked: tuple[int, int] = (0, 0)  # the session that was challenged, and the nonce
    asked_s: float = NEVER
    clock: Clock | None = None  # its own, beside ours; None: it said nothing yet
    word_s: float = NEVER  # when its last word came
    flags: Flags = Flags.NONE
    table_age_s: float = 0.0
    formats: tuple[int, int] = (1, 1)
    newest_key: int = 1
    digest: int = 0
    count: int = 0
    wanted_s: float = NEVER
    since_s: float = NEVER  # up since
    wires: frozenset[Channel] = frozenset()
    left: bool = False
    paths: Mapping[Channel, Path] = msgspec.field(default_factory=dict)

    def path(self, channel: Channel) -> Path:
        """What is heard of it there; a path of eternal silence if nothing ever was."""
        return self.paths.get(channel, NO_PATH)


class Wire(msgspec.Struct, frozen=True):
    """One subnet that this node is on."""

    name: Channel
    mac: str = ""
    carrier: bool = True
    gateway: IP | None = None
    roster: frozenset[MemberId] = frozenset()  # others that were ever heard here both ways
    last_frame_s: float = NEVER
    suspended: bool = False  # silent of every frame
    alone: bool = True  # listened, and heard no member: silence means nothing
    blind: bool = False  # members are known to be here, and none was ever heard
    listening: bool = False
    listen_from_s: float = NEVER
    listen_until_s: float = NEVER
    proven_s: float = NEVER  # since when somebody has been heard both ways
    majority_s: float = LATER  # since when there has been one; LATER: there is none
    minority_s: float = NEVER  # since when there has been none
    loss_s: float = NEVER  # when a member last fell silent
    echo_s: float = NEVER  # when the gateway was last asked
    gateway_ok_s: float = NEVER  # when it last answered our own address
    vips_answered: bool = False  # it has answered an echo from a held address: so a missing answer means something
    sampled: tuple[Key, ...] = ()  # asked for in the last round
    sample_from: int = 0
    answered: frozenset[IP] = frozenset()  # since that round
    spoken_s: float = NEVER  # the announcements' budget is full from then on


class Offered(NamedTuple):
    """An offer that is open, or was in vain."""

    to: MemberId
    at_s: float
    tried: tuple[MemberId, ...]
    quiet: bool


class Foreign(NamedTuple):
    """A host that is no member, and answers for a key."""

    mac: str
    since_s: float
    seen_s: float  # last
    conflicts: int = 0  # attempts to take the key, in a row, that a foreign host answered


class Hold(msgspec.Struct, frozen=True):
    """What is known of one key."""

    key: Key
    known: Version = UNCLAIMED  # the highest heard of
    owner: MemberId = NOBODY
    heirs: Heirs = NO_HEIRS
    mine: Mine = Mine.NONE
    since_s: float = NEVER  # when `mine` or the owner last changed
    orphan_s: float = NEVER  # when it lost its owner other than by silence
    at_once: bool = False  # the owner let go: nobody needs to wait
    probes: int = 0  # broadcast questions in a row that nobody answered
    probe_s: float = NEVER
    take_s: float | None = None  # when it is our turn
    barred_s: float = NEVER  # until then
    resort_s: float = NEVER  # when it was last taken as a last resort
    misses: int = 0  # echoes in a row without an answer
    contested: bool = False  # an unknown host tells everybody that it has it
    yielded: bool = False  # somebody has it whose claim wasn't heard
    until_s: float = LATER  # the end of QUIET or LINGER
    giver: MemberId = NOBODY  # who lingers while we are quiet
    offered: Offered | None = None
    unfit_s: float = LATER  # since when we own it without being fit
    better_s: float = LATER  # since when another would be a better owner
    due_s: float = NEVER  # a key of ours: when to look for a cause again, if nothing changes
    announce_s: float = LATER  # when to announce next
    rounds: int = 0
    claimed_s: float = NEVER  # when a lower claim was last answered
    repeated_s: float = NEVER  # when clients were last told again since another member claimed it
    defended_s: float = NEVER  # when a foreign host was last told
    foreign: Foreign | None = None  # the last that was seen
    asked_s: float = NEVER  # when a client last asked


class Tally(NamedTuple):
    """What a member is believed to own, in sum."""

    digest: int = 0
    size: int = 0


NOTHING = Tally()
_HANDED_OVER = 1 << 20  # numbers that are left out


class Circumstances(NamedTuple):
    """What a cause to give keys away may rest on, but for the proxy's table: while it stands, nobody need look."""

    up: frozenset[tuple[Channel, MemberId, bool, bool]]  # who is up on each wire, returner, stale
    carriers: frozenset[Channel]
    draining: bool
    stale: bool
    others_fresh: frozenset[Channel]  # wires where a majority's tables are fresh, while ours isn't


class Dealt(NamedTuple):
    """Whose turn each key is that nobody owned when they were dealt out."""

    up: frozenset[tuple[MemberId, bool, bool]]  # the members then, returner, stale
    owners: Mapping[Key, MemberId]


class Memory(msgspec.Struct, frozen=True):
    """What a process leaves behind for the next start on this boot: never needed for safety, it saves moves."""

    rosters: Mapping[Channel, frozenset[MemberId]] = msgspec.field(default_factory=dict)
    held: Mapping[Key, Version] = msgspec.field(default_factory=dict)


class State(msgspec.Struct, frozen=True):
    """All of it."""

    settings: Settings
    me: MemberId
    session: int
    secret: bytes  # makes nonces
    seq: int = 0
    last_step_s: float = NEVER
    due_s: float = NEVER  # the next tick: when time may change something, and heartbeats are to be read
    kept_s: float = NEVER  # when the heartbeats that are kept go out, which is before
    beat_s: float = NEVER  # the next heartbeat
    watch_s: float = NEVER  # the next look at members' silence
    slow_s: float = NEVER  # the next look at what hurries not
    draining: bool = False
    drains: frozenset[DrainCause] = frozenset()  # why
    restarting: bool = False
    stopped: bool = False
    joined_s: float = NEVER  # when a member was last new
    up_s: float = NEVER
    spread_s: float = NEVER  # when an address was last let go for balance
    fresh_s: float = NEVER  # what the API said then is in the table
    proxy_gone: bool = False
    drained: bool = False
    members_seen: frozenset[tuple[Channel, MemberId]] = frozenset()  # who was up when heirs were last chosen
    heirs_due: bool = True
    heirless: tuple[Key, ...] = ()  # keys of ours whose heirs are to be named anew
    table: Table = Table()
    memory: Memory = Memory()
    wires: Mapping[Channel, Wire] = msgspec.field(default_factory=dict)
    members: Mapping[MemberId, Member] = msgspec.field(default_factory=dict)
    holds: Mapping[Key, Hold] = msgspec.field(default_factory=dict)
    busy: frozenset[Key] = frozenset()  # keys that time may change
    mine: frozenset[Key] = frozenset()  # keys that we answer for, in whatever way
    tallies: Mapping[MemberId, Tally] = msgspec.field(default_factory=dict)
    owned: Mapping[MemberId, frozenset[Key]] = msgspec.field(default_factory=dict)  # what the tallies count
    barred: frozenset[Key] = frozenset()  # keys that we let go, and leave alone for a while
    dealt: Mapping[Channel, Dealt] = msgspec.field(default_factory=dict)  # keys of nobody, by wire
    shared: frozenset[Key] = frozenset()  # keys that several members share, as the table has it
    refused: Mapping[Key, str] = msgspec.field(default_factory=dict)  # that should be, and why they aren't
    shares: Mapping[Key, Share] = msgspec.field(default_factory=dict)
    sharing: frozenset[Channel] = frozenset()  # wires on which this member answers its part of clients
    outdated_s: float = LATER  # since when our table is old while a majority's aren't
    telling: tuple[tuple[float, Key, IP], ...] = ()  # who is to be told when
    passing: tuple[tuple[float, Key, IP], ...] = ()  # of whom other members are to be told when, the first first
    reviewed: Circumstances | None = None  # when causes to give keys away were last looked for


class Start(msgspec.Struct, frozen=True):
    """What is drawn anew at each start."""

    session: int  # 64 random bits
    secret: bytes  # random, for nonces
    memory: Memory = Memory()


def start(settings: Settings, drawn: Start, now: float) -> State:
    """A process that knows nothing but what an earlier one of this boot wrote down. It listens before it speaks."""
    return State(
        settings=settings,
        me=member_id(settings.node),
        session=drawn.session,
        secret=drawn.secret,
        last_step_s=now,
        beat_s=now,
        slow_s=now,
        joined_s=now,
        up_s=now,
        fresh_s=now,
        memory=drawn.memory,
    )


def hand_over(state: State) -> State:
    """What a surged process of the same node goes on with: the same session and claims, and later numbers.

    Both read the same monotonic clock, so every time stands. The old process must not step again.
    """
    owned: dict[MemberId, set[Key]] = {}
    for hold in state.holds.values():
        if hold.owner != NOBODY:
            owned.setdefault(hold.owner, set()).add(hold.key)
    return msgspec.structs.replace(
        state,
        seq=state.seq + _HANDED_OVER,
        restarting=False,
        # Made anew: an older version's state may not have them.
        owned={owner: frozenset(keys) for owner, keys in owned.items()},
        barred=frozenset(hold.key for hold in state.holds.values() if hold.yielded or hold.barred_s > NEVER),
        dealt={},
        reviewed=None,
    )


def remember(state: State) -> Memory:
    """What is worth writing down."""
    return Memory(
        rosters={name: wire.roster for name, wire in state.wires.items()},
        held={key: state.holds[key].known for key in state.mine if state.holds[key].owner == state.me},
    )
