"""What a proxy tells its announcer over a Unix socket: frames, each a length and MessagePack.

First everything, in parts of so many addresses that none keeps the reader for long; then changes; and once a second
that the proxy still lives, and how old its view of the API is. No I/O.
"""

from collections.abc import Iterator, Sequence

import msgspec

from endpointslice.types import IP
from proxy.announcer.around import Around
from proxy.announcer.served import Said, Served

LENGTH_BYTES = 4
LARGEST_BYTES = 1 << 26  # thousands of Nodes, and what dozens of advertisements say of them
PART = 100  # addresses a frame
ALIVE_S = 1.0
SILENT_S = 5.0  # without a frame the proxy counts as gone


class Part(msgspec.Struct, frozen=True, tag="part"):
    """Addresses that changed and addresses that are gone; a change is whole with its `last` part."""

    changed: tuple[Served, ...] = ()
    gone: tuple[IP, ...] = ()
    first: bool = False  # of everything: what was known before counts no more
    last: bool = True
    age_s: float = 0.0
    around: Around | None = None  # None: as it was


class Alive(msgspec.Struct, frozen=True, tag="alive"):
    """Nothing has changed, or nothing is known yet."""

    age_s: float = 0.0


Frame = Part | Alive


class BrokenFrameError(Exception):
    """The peer talks nonsense; the connection is of no use any more."""


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Frame)


def pack_frame(frame: Frame) -> bytes:
    """Length and content."""
    content = _ENCODER.encode(frame)
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


def parse_length(data: bytes) -> int:
    """Of the content that follows; BrokenFrameError above LARGEST_BYTES."""
    length = int.from_bytes(data, "big")
    if length > LARGEST_BYTES:
        raise BrokenFrameError(f"a frame of {length} bytes")
    return length


def parse_content(content: bytes) -> Frame:
    """The frame; BrokenFrameError if it is none."""
    try:
        return _DECODER.decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BrokenFrameError(str(error)) from error


def split_change(before: Said | None, after: Said, age_s: float) -> Iterator[Part]:
    """The frames that bring a reader from `before` to `after`; None: it knows nothing, and gets at least one."""
    known = before.served if before is not None else {}
    changed = [served for vip, served in after.served.items() if known.get(vip) != served]
    gone = tuple(known.keys() - after.served.keys())
    around = after.around if before is None or before.around != after.around else None
    parts: Sequence[Sequence[Served]] = [changed[at : at + PART] for at in range(0, len(changed), PART)] or [()]
    if before is not None and not changed and not gone and around is None:
        return
    for number, part in enumerate(parts):
        first, last = before is None and number == 0, number == len(parts) - 1
        yield Part(tuple(part), gone if last else (), first, last, age_s, around if last else None)


def apply_part(known: Said, part: Part) -> Said:
    """What the reader knows after a part."""
    after = {} if part.first else dict(known.served)
    for vip in part.gone:
        after.pop(vip, None)
    after.update({served.vip: served for served in part.changed})
    return Said(after, known.around if part.around is None else part.around)
