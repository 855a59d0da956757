"""The words of ownership: members, wires, keys, versions, and how long things take.

Times are seconds of one monotonic clock, this node's own; they are never compared with another node's.
"""

import hashlib
import math
from collections.abc import Iterable
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import NamedTuple, NewType

import msgspec

from endpointslice.types import IP, NodeName

MemberId = NewType("MemberId", int)  # 64 bits of a hash of the node's name
Channel = NewType("Channel", str)  # where a message was heard: a wire, or the node network

NOBODY = MemberId(0)
NODE_NETWORK = Channel("node")
NEVER = -math.inf
LATER = math.inf
MASK = (1 << 64) - 1
_ODD = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio: one multiply spreads bits well enough for an order


class Key(NamedTuple):
    """The unit of ownership: an address on a wire. A wire is a subnet, as interface names differ from node to node."""

    vip: IP
    wire: Channel


class Version(NamedTuple):
    """Which claim is newer: the higher epoch, then the higher member."""

    epoch: int
    owner: MemberId


UNCLAIMED = Version(0, NOBODY)


class Tier(IntEnum):
    """What a node has of an address's endpoints, best first."""

    READY = 0
    DRAINING = 1  # serving ones that terminate
    NONE = 2


class Mine(StrEnum):
    """What this member does for a key."""

    NONE = "none"
    HOLD = "hold"  # answers every request, and announces
    QUIET = "quiet"  # owns, but leaves clients that know the old owner alone
    LINGER = "linger"  # was the owner: answers only those that ask it by its own MAC


OWNING = frozenset({Mine.HOLD, Mine.QUIET})


class WithoutMajority(StrEnum):
    """What becomes of addresses of the dead where no majority is left."""

    LAST_RESORT = "last-resort"  # somebody takes them after `last_resort_s`
    NEVER = "never"  # they stay dark: for who fears two answers more


class MinorityHold(StrEnum):
    """What an owner without a majority does where the gateway answers no echo, so nothing can be looked up."""

    KEEP = "keep"
    STOP = "stop"


class DrainCause(StrEnum):
    """Why a node gives its addresses away; stable codes."""

    ASKED = "asked"  # by `closeby drain`
    ANNOTATION = "annotation"  # of its Node
    SHUTDOWN = "shutdown"  # of the machine, as its kubelet says


class Timing(msgspec.Struct, frozen=True):
    """How long each thing takes, in seconds; the default profile: 200 ms times 5."""

    interval_s: float = 0.2  # between heartbeats
    misses: int = 5
    rank_step_s: float = 0.06  # between takers of different rank
    look_s: float = 0.05  # between looks on the wire
    last_resort_s: float = 10.0
    long_last_resort_s: float = 45.0  # where the API says, freshly, that the silent ones are Ready
    bar_s: float = 60.0
    restart_s: float = 3.0  # how long a member that said it restarts may be silent
    settle_s: float = 2.0  # an address without an owner waits so long after the last new member
    longest_settle_s: float = 10.0
    crowd: int = 10  # with more other members than that, and nothing to wait for, one reads and looks half as often

    @property
    def detect_s(self) -> float:
        """Silence of so long is death."""
        return self.interval_s * self.misses


DEFAULT = Timing()
FAST = Timing(interval_s=0.1, misses=3)
CALM = Timing(interval_s=1.0, misses=5)
PROFILES = {"default": DEFAULT, "fast": FAST, "calm": CALM}


class Settings(msgspec.Struct, frozen=True):
    """What an announcer is told at its start."""

    node: NodeName
    timing: Timing = DEFAULT
    without_majority: WithoutMajority = WithoutMajority.LAST_RESORT
    minority_hold: MinorityHold = MinorityHold.KEEP
    grace_s: float = 30.0  # how long an old owner answers its cached clients
    gives_when_stale: bool = True  # a table much older than the others' lets its addresses go (F10)
    spreads: bool = True  # an owner of too many lets some go (F15)
    formats: tuple[int, int] = (1, 1)  # the oldest and the newest that are understood
    keys: tuple[int, ...] = (1,)  # ids of the keys that are accepted, the newest last


@lru_cache(maxsize=65536)
def member_id(node: NodeName) -> MemberId:
    """The same number on every node; never NOBODY."""
    return MemberId(int.from_bytes(hashlib.sha256(node.encode()).digest()[:8], "big") or 1)


@lru_cache(maxsize=65536)
def key_hash(key: Key) -> int:
    """64 bits, the same on every node."""
    return int.from_bytes(hashlib.blake2b(f"{key.vip}@{key.wire}".encode(), digest_size=8).digest(), "big")


def rendezvous(hashed_key: int, member: MemberId) -> int:
    """Lower comes first. One multiply: by sha256 5,000 keys and 100 members take 1.6 s."""
    return ((hashed_key ^ member) * _ODD) & MASK


def spread_out(hashed_key: int, members: Iterable[MemberId]) -> list[int]:
    """The rendezvous of each, as one comprehension: a call for each would double the cost of an election."""
    return [((hashed_key ^ member) * _ODD) & MASK for member in members]


def claim_digest(key: Key, version: Version) -> int:
    """One claim's part of a digest; a digest is the sum of its parts, 64 bits."""
    return (key_hash(key) * (2 * version.epoch + 1)) & MASK
