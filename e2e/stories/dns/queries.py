"""EFFECT: look-ups from pods of a cluster, steadily, from `start` to `stop`."""

import json
import subprocess
from collections.abc import Mapping
from types import TracebackType
from typing import NamedTuple, Self

from e2e.world.clients import Hosts
from e2e.world.lookups import Question
from e2e.world.processes import ProgramError, start_program, stop_programs, wait_ready


class Way(NamedTuple):
    """How a server is asked."""

    protocol: str  # "udp" or "tcp"
    ip: str
    port: int = 53


class Ask(NamedTuple):
    """What each client asks: each way once an interval. Patience is glibc's default (resolv.conf(5))."""

    ways: tuple[Way, ...]
    names: tuple[Question, ...]
    interval_s: float = 0.04
    timeout_s: float = 5.0
    attempts: int = 2


class LookUp(NamedTuple):
    """One look-up, as e2e/world/lookups.py tells it."""

    way: int  # index into the ways
    began: float  # monotonic seconds, the same clock as time.monotonic()
    took_s: float
    tries: int
    server: str  # who answered, by its NSID; "" without an answer
    fault: str  # why nobody did; "" with an answer


class Resolvers:
    """A steady stream of look-ups by clients; used as a context manager, which ends them."""

    def __init__(self, hosts: Hosts, clients: Mapping[str, Ask]) -> None:
        self._hosts = hosts
        self._clients = clients
        self._running: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Self:
        try:
            for name, ask in self._clients.items():
                self._running[name] = process = start_program(self._hosts.host(name).netns, "lookups")
                order = {**ask._asdict(), "targets": [way._asdict() for way in ask.ways]}
                assert process.stdin
                process.stdin.write(json.dumps(order) + "\n")
                process.stdin.flush()
            for name, process in self._running.items():
                wait_ready(process, f"the resolver in {name}")
        except BaseException:
            stop_programs(self._running.values())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stop_programs(self._running.values())

    def stop(self) -> dict[str, tuple[LookUp, ...]]:
        """End the streams, once what is on its way has ended; all look-ups of each client. ProgramError."""
        for process in self._running.values():
            assert process.stdin
            process.stdin.close()
        return {name: _read(process, name) for name, process in self._running.items()}


def _read(process: subprocess.Popen[str], name: str) -> tuple[LookUp, ...]:
    assert process.stdout
    line = process.stdout.readline()
    if not line:
        raise ProgramError(f"the resolver in {name} ended with {process.wait()}")
    return tuple(LookUp(*record) for record in json.loads(line))
