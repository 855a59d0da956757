"""A whole state as bytes, for the process that follows this one on the same node while it still runs. No I/O.

Both read the same monotonic clock, so every time stands. Who can't read another version's state starts from nothing.
"""

import msgspec

from endpointslice.types import NodeName
from proxy.announcer.ages import PackedAges
from proxy.l2.state import State, hand_over
from proxy.l2.types import Settings


def render_state(state: State) -> bytes:
    """All of it."""
    return msgspec.msgpack.encode(state, enc_hook=_plain)


def _plain(value: object) -> object:
    """Of what heartbeats hold packed."""
    if isinstance(value, PackedAges):
        return dict(value)
    raise NotImplementedError


def parse_state(data: bytes, node: NodeName) -> State | None:
    """The state; None if it is another version's, or another node's."""
    try:
        state = msgspec.msgpack.decode(data, type=State)
    except (msgspec.DecodeError, RecursionError):
        return None
    return state if state.settings.node == node else None


def continue_state(state: State, settings: Settings) -> State:
    """What the following process goes on with: its own settings, the same session and claims, later numbers."""
    return msgspec.structs.replace(hand_over(state), settings=settings)
