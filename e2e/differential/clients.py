"""EFFECT: the client programs of one place, which stay and take orders; and its servers."""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TypeAlias

from e2e.differential.places import CLIENTS, TARGET_PORTS
from e2e.differential.targets import Target
from e2e.world.cluster import World
from e2e.world.processes import give_order, read_answer, start_program, stop_programs, wait_ready

_PROGRAMS = Path(__file__).parent
_COUNTS = list[dict[str, int]]  # of a client's answer: how often each target met which fate

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
            written = [[t.protocol, t.ip, t.port, t.candidates] for t in targets]
            give_order(self._running[name], {**patience._asdict(), "targets": written})

    def receive(self, clients: Iterable[str]) -> dict[str, list[Fates]]:
        """The fates of each client's targets, in their order. ProgramError if a client ended."""
        answers = {name: read_answer(self._running[name], f"the client in {name}", _COUNTS) for name in clients}
        return {name: [frozenset(counts) for counts in of_client] for name, of_client in answers.items()}
