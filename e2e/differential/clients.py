"""EFFECT: the client programs of one place, which stay and take orders; and its servers."""

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TypeAlias

from e2e.differential.places import CLIENTS, TARGET_PORTS
from e2e.differential.targets import Target
from e2e.world.cluster import World
from e2e.world.processes import ProgramError, start_program, stop_programs, wait_ready

_PROGRAMS = Path(__file__).parent

Fates: TypeAlias = frozenset[str]  # "ADDRESS PORT SOURCE" of an answer, or refused, timed-out, unreachable, broken
Orders: TypeAlias = Mapping[str, Sequence[Target]]  # by client


class Patience(NamedTuple):
    """How long a try may take, and how many must fail alike before a target's fate is failure."""

    timeout_s: float
    failed_tries: int


def run_server(netns: str) -> subprocess.Popen[str]:
    """A server on all addresses of the namespace; ready."""
    ports = [f"{protocol}:{port}" for protocol in ("tcp", "udp") for port in TARGET_PORTS]
    process = start_program(netns, str(_PROGRAMS / "server"), ports)
    wait_ready(process, "a server")
    return process


class Clients:
    """All clients of one place. Used as a context manager."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._running: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Self:
        for name in CLIENTS:
            self._running[name] = start_program(self._world.host(name).netns, str(_PROGRAMS / "client"))
        for name, process in self._running.items():
            wait_ready(process, f"the client in {name}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stop_programs(self._running.values())

    def send(self, orders: Orders, patience: Patience) -> None:
        """Give every client its order; `receive` must follow."""
        for name, targets in orders.items():
            pipe = self._running[name].stdin
            assert pipe
            written = [[t.protocol, t.ip, t.port, t.candidates] for t in targets]
            pipe.write(json.dumps({**patience._asdict(), "targets": written}) + "\n")
            pipe.flush()

    def receive(self, clients: Iterable[str]) -> dict[str, list[Fates]]:
        """The fates of each client's targets, in their order. ProgramError if a client ended."""
        return {name: self._read(name) for name in clients}

    def _read(self, name: str) -> list[Fates]:
        pipe = self._running[name].stdout
        assert pipe
        line = pipe.readline()
        if not line:
            raise ProgramError(f"the client in {name} ended with {self._running[name].wait()}")
        return [frozenset(fates) for fates in json.loads(line)]
