"""EFFECT: what a process leaves for the next one of this boot: in /run, so a new boot finds none.

Never needed for safety: without it a start waits a little longer.
"""

from pathlib import Path

import msgspec
import structlog

from endpointslice.types import IP
from proxy.l2.state import Memory
from proxy.l2.types import Channel, Key, MemberId, Version

log = structlog.get_logger()


class _Held(msgspec.Struct, frozen=True):
    vip: IP
    wire: Channel
    epoch: int
    owner: int


class _File(msgspec.Struct, frozen=True):
    held: tuple[_Held, ...] = ()
    rosters: dict[str, tuple[int, ...]] = {}


def render_memory(memory: Memory) -> bytes:
    """As the file holds it."""
    held = tuple(_Held(key.vip, key.wire, *version) for key, version in sorted(memory.held.items()))
    rosters: dict[str, tuple[int, ...]] = {}
    for name, members in memory.rosters.items():
        rosters[name] = tuple(sorted(members))
    return msgspec.json.encode(_File(held, rosters))


def parse_memory(data: bytes) -> Memory:
    """What was remembered; nothing if the bytes make no sense."""
    try:
        file = msgspec.json.decode(data, type=_File)
    except msgspec.DecodeError:
        return Memory()
    return Memory(
        rosters={
            Channel(name): frozenset(MemberId(member) for member in members) for name, members in file.rosters.items()
        },
        held={Key(one.vip, one.wire): Version(one.epoch, MemberId(one.owner)) for one in file.held},
    )


def read_memory(path: Path) -> Memory:
    """What an earlier process wrote down; nothing where there is no file."""
    try:
        return parse_memory(path.read_bytes())
    except OSError:
        return Memory()


def write_memory(path: Path, memory: Memory) -> None:
    """All or nothing; a refusal is a line in the log."""
    place = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        place.write_bytes(render_memory(memory))
        place.replace(path)
    except OSError as error:
        log.warning("memory_unwritten", file=str(path), why=error.strerror)
