"""Which member answers which requester of an address that several nodes share, and why one can't be shared.

Rendezvous hashing: the same input gives the same answer on every node, and who leaves moves only its own requesters.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from endpointslice.types import IP
from proxy.l2.candidates import Demand, Options, Reach
from proxy.l2.types import NOBODY, Key, MemberId, key_hash, rendezvous

MOST_WEIGHT = 16
_STEP = 0xD1B54A32D192ED03  # odd, so that a member's lots differ in all bits


class Client(NamedTuple):
    """Who asked for a shared address."""

    mac: str
    seen_s: float


class Share(NamedTuple):
    """What is known of an address that several members share."""

    members: Mapping[MemberId, int] = {}  # with weights; none: its owner alone answers
    clients: Mapping[IP, Client] = {}  # who has asked
    routers: frozenset[str] = frozenset()  # MACs that stand for many clients


NO_SHARE = Share()


class NoShare(StrEnum):
    """Why an address whose advertisement asks for it isn't shared; stable codes."""

    AFFINITY = "session-affinity"  # who is moved to another node loses the endpoint that it is bound to
    ONE_NODE = "one-node"  # only one node is allowed, or has endpoints under externalTrafficPolicy Local
    PREFERRED = "nodes-preferred"  # a Service or an advertisement prefers nodes, and all would answer
    DISAGREE = "advertisements-disagree"  # another advertisement for the address doesn't ask for it
    OFF = "not-enabled"  # announcers have to be told so


def why_not_shared(demand: Demand, reach: Reach, options: Options) -> NoShare | None:
    """What contradicts sharing; None: nothing. The same on every node, as all read the same API."""
    if not options.shares:
        return NoShare.OFF
    if reach.disagrees:
        return NoShare.DISAGREE
    if demand.sticky:
        return NoShare.AFFINITY
    if demand.preferred or reach.weights:
        return NoShare.PREFERRED
    limits = [nodes for nodes in (demand.pinned, reach.nodes) if nodes]
    if demand.local:
        limits.append(frozenset(demand.ready))
    alone = bool(limits) and len(frozenset.intersection(*limits)) <= 1
    return NoShare.ONE_NODE if alone else None


@lru_cache(maxsize=65536)
def requester_hash(requester: IP) -> int:
    """64 bits, the same on every node."""
    return int.from_bytes(blake2b(requester.encode(), digest_size=8).digest(), "big")


def choose_sharer(key: Key, requester: IP, weights: Mapping[MemberId, int]) -> MemberId:
    """Who answers it; NOBODY where there is none. A member of weight 2 is asked by twice as many as one of 1."""
    hashed = key_hash(key) ^ requester_hash(requester)
    best: tuple[int, MemberId] | None = None
    for member, weight in weights.items():
        for lot in range(min(max(weight, 1), MOST_WEIGHT)):
            drawn = rendezvous(_mix(hashed ^ (lot * _STEP)), member), member
            if best is None or drawn < best:
                best = drawn
    return best[1] if best is not None else NOBODY


def _mix(number: int) -> int:
    """One multiply orders members alike for requesters that differ in few bits; a shift between makes it two."""
    return (number ^ (number >> 29)) * _STEP & 0xFFFFFFFFFFFFFFFF
