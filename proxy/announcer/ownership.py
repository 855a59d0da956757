"""What an announcer tells its node's proxy, over the socket that the feed comes by: what it owns, and who else does.

Always the whole of it: a few hundred kilobytes at 5,000 addresses, and only after a change. No I/O.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from endpointslice.types import IP, NodeName
from proxy.announcer.feed_frames import LENGTH_BYTES, BrokenFrameError
from proxy.l2.draft import Draft
from proxy.l2.evidence import CONFLICT_S, find_foreign
from proxy.l2.placing import place_of
from proxy.l2.state import Hold, State
from proxy.l2.types import NOBODY, OWNING, Channel, Key


class Origin(msgspec.Struct, frozen=True):
    """How an address came to a node."""

    how: str  # of Note: taken, last-resort or received; "": it was owned when that was forgotten
    before: NodeName = NodeName("")  # whose it was; "": nobody's


UNKNOWN = Origin("")


class Holding(msgspec.Struct, frozen=True):
    """An address that this node answers for."""

    vip: IP
    interface: str
    origin: Origin = UNKNOWN


class Conflict(msgspec.Struct, frozen=True):
    """A host that is no member answers for an address, too."""

    vip: IP
    interface: str
    mac: str
    held: bool  # this node has it; else nobody takes it


class Ownership(msgspec.Struct, frozen=True):
    """All of a node's."""

    holdings: tuple[Holding, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    heals: int = 0  # raised when a member is back: it may have told, unheard, that the addresses are its own


class Story(NamedTuple):
    """What the state doesn't keep."""

    origins: Mapping[Key, Origin]
    heals: int


_DOUBT_S = CONFLICT_S + 10.0
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Ownership)


def pack_ownership(ownership: Ownership) -> bytes:
    """Length and content, as the feed's frames."""
    content = _ENCODER.encode(ownership)
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


def parse_ownership(content: bytes) -> Ownership:
    """BrokenFrameError if it is none."""
    try:
        return _DECODER.decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BrokenFrameError(str(error)) from error


def describe_ownership(state: State, now: float, interfaces: Mapping[Channel, str], story: Story) -> Ownership:
    """As of now; `interfaces`: by wire."""
    owned = sorted(key for key in state.mine if state.holds[key].mine in OWNING and key.wire in interfaces)
    return Ownership(
        tuple(Holding(key.vip, interfaces[key.wire], story.origins.get(key, UNKNOWN)) for key in owned),
        tuple(_conflicts(state, now, interfaces)),
        story.heals,
    )


def may_change(state: State, now: float) -> bool:
    """Whether time alone may change it: conflicts begin and end so."""
    return any(hold.foreign is not None and now - hold.foreign.seen_s < _DOUBT_S for hold in state.holds.values())


def count_troubled(state: State, now: float) -> tuple[int, int]:
    """Addresses of the table that nobody is known to answer for; and those that a foreign host answers for, too."""
    holds = [state.holds[key] for key in state.table.vips if key in state.holds]
    met = (hold for hold in holds if hold.foreign is not None)
    conflicting = sum(bool(find_foreign(state.members.values(), hold, now)) for hold in met)
    return sum(hold.owner == NOBODY for hold in holds), conflicting


def _conflicts(state: State, now: float, interfaces: Mapping[Channel, str]) -> list[Conflict]:
    draft = Draft(state, max(now, state.last_step_s))
    found = []
    for key, hold in sorted(state.holds.items()):
        # A member's first frame, or its first with another MAC, may come before the heartbeat that tells its MAC.
        if hold.foreign is None or key.wire not in interfaces or now - hold.foreign.since_s < draft.detect_s:
            continue
        mac = find_foreign(state.members.values(), hold, now)
        if mac and (hold.mine in OWNING or _is_to_tell(draft, hold)):
            found.append(Conflict(key.vip, interfaces[key.wire], mac, held=hold.mine in OWNING))
    return found


def _is_to_tell(draft: Draft, hold: Hold) -> bool:
    """Of an address that nobody takes, the one tells who would be first to."""
    return hold.owner == NOBODY and place_of(draft, hold.key) == draft.me
