"""EFFECT: the clients at work: `Watch` over a fault, `await_owner` before it."""

import subprocess
import time
from types import TracebackType
from typing import NamedTuple, Self

from e2e.lan.lan import Lan
from e2e.lan.measure import Asked, Observed, sole_owner
from e2e.lan.members import Member, name_of
from e2e.lan.programs import (
    read_asked,
    read_broken,
    read_streamed,
    start_asker,
    start_connections,
    start_stream,
    stop_asking,
)
from e2e.world.netns import run_ip
from e2e.world.processes import stop_programs, wait_ready

_LOOK_S = 1.0
SETTLE_S = 60.0  # until somebody owns the VIP, at the most


class SettleError(Exception):
    """Nobody came to own the VIP alone; the text is who answered last."""


class _Running(NamedTuple):
    asker: subprocess.Popen[str]
    stream: subprocess.Popen[str]
    connections: subprocess.Popen[str]


class Watch:
    """All clients, from entering the block to `stop`; each has been answered once when the block begins.

    The warm one begins without neighbour entries: one of an earlier owner's would be served on, by that. And from ports
    of its own: a node still has the connections that were lost with it.

    With `served=False` nobody owns the VIP yet: only the cold client and the stream ask, and neither waits.
    """

    def __init__(self, lan: Lan, family: str, *, served: bool = True) -> None:
        self._lan, self._family, self._served = lan, family, served
        self._running: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        starts = [(start_asker, self._lan.cold), (start_stream, self._lan.warm)]
        if self._served:
            starts.append((start_connections, self._lan.warm))
        run_ip({self._lan.warm.netns: ["neigh flush dev eth0"]})
        self._lan.take_new_ports()
        try:
            for start, member in starts:
                self._running.append(start(member, self._family))
            for process in self._running[: None if self._served else 1]:
                wait_ready(process, "a client")
        except BaseException:
            stop_programs(self._running)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stop_programs(self._running)

    def stop(self) -> Observed:
        """What they saw. ProgramError if a client ended before."""
        for process in self._running:
            stop_asking(process)
        asker, stream, *connections = self._running
        broken = tuple(why for process in connections for why in read_broken(process))
        return Observed(read_asked(asker), read_streamed(stream), broken)


def look(lan: Lan, family: str, seconds: float = _LOOK_S) -> Asked:
    """What the cold client sees within so many seconds."""
    process = start_asker(lan.cold, family)
    try:
        wait_ready(process, "the cold client")
        time.sleep(seconds)
        stop_asking(process)
        return read_asked(process)
    finally:
        stop_programs([process])


def await_owner(lan: Lan, family: str, timeout_s: float = SETTLE_S) -> Member:
    """The node that alone answered for a second. SettleError if there is none in time."""
    deadline = time.monotonic() + timeout_s
    while True:
        seen = look(lan, family)
        mac = sole_owner(seen, 0.0)
        owner = next((node for node in lan.nodes if mac and name_of(mac, lan.nodes) == node.name), None)
        if owner is not None:
            return owner
        if time.monotonic() > deadline:
            who = sorted({name_of(mac, lan.nodes) for _, _, mac in seen.answers})
            raise SettleError(f"after {timeout_s:g} s the VIP is answered for by {who or 'nobody'}")
