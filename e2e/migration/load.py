"""EFFECT: the load on the node that moves, and what became of it."""

import json
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import NamedTuple, Self

from e2e.world.clients import Hosts, Outcome, Record, Target, Traffic
from e2e.world.processes import ProgramError, start_program, stop_programs, wait_ready

_EVERY_S = 0.05  # five targets, each once: 100 attempts a second
_SLOW_S = 0.5  # the kernel sends a SYN again after a second

Targets = Mapping[str, Sequence[Target]]  # by the host that asks


class Flow(NamedTuple):
    """How a lasting connection or datagram flow fared."""

    name: str  # who answered first
    asked: int
    lost: int
    moved: int
    broken: str


class Cost(NamedTuple):
    """What a user would notice of a move."""

    attempts: int
    failed: Mapping[str, int]  # new connections and exchanges without an answer, by who asked whom and how it ended
    slow: int  # answered, but after more than half a second: a packet was lost
    flows: int
    broken: int  # established connections that ended
    lost: int  # questions of established flows without an answer
    moved: int  # answers from another server than the flow began with

    @property
    def total(self) -> int:
        """All of it; 0 is the aim."""
        return sum(self.failed.values()) + self.slow + self.broken + self.lost + self.moved


class Load:
    """New connections and lasting flows, from entering the block to `stop`: each target once every `every_s`."""

    def __init__(self, world: Hosts, new: Targets, lasting: Targets, every_s: float = _EVERY_S) -> None:
        self._world = world
        self._traffic = Traffic(world, new, every_s)
        self._new, self._lasting, self._every_s = new, lasting, every_s
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            for host, targets in self._lasting.items():
                process = self._running[host] = start_program(self._world.host(host).netns, "flows")
                opening.callback(stop_programs, [process])
                order = {
                    "interval_s": self._every_s,
                    "flows": [one._asdict() for one in targets for _ in range(one.tries)],
                }
                assert process.stdin
                process.stdin.write(json.dumps(order) + "\n")
                process.stdin.flush()
            for host, process in self._running.items():
                wait_ready(process, f"the lasting client in {host}")
            opening.enter_context(self._traffic)
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def stop(self) -> Cost:
        """End the clients; what they saw, summed."""
        records, flows = self.end()
        ended = [
            (f"{host} to {self._new[host][record.target].ip}:{self._new[host][record.target].port}", record)
            for host, of_host in records.items()
            for record in of_host
        ]
        return count(ended, [flow for of_host in flows.values() for flow in of_host])

    def end(self) -> tuple[dict[str, tuple[Record, ...]], dict[str, list[Flow]]]:
        """End the clients; by host each attempt that was made, and each lasting flow in the order asked for."""
        records = self._traffic.stop()
        for process in self._running.values():
            assert process.stdin
            process.stdin.close()
        return records, {host: _read(host, process) for host, process in self._running.items()}


def count(ended: Sequence[tuple[str, Record]], flows: Sequence[Flow]) -> Cost:
    """Pure: the sum of it; each record with who asked whom."""
    return Cost(
        attempts=len(ended),
        failed=Counter(f"{who}: {record.outcome}" for who, record in ended if record.outcome is not Outcome.ANSWERED),
        slow=sum(record.outcome is Outcome.ANSWERED and record.took_s > _SLOW_S for _, record in ended),
        flows=len(flows),
        broken=sum(bool(flow.broken) for flow in flows),
        lost=sum(flow.lost for flow in flows),
        moved=sum(flow.moved for flow in flows),
    )


def _read(host: str, process: subprocess.Popen[str]) -> list[Flow]:
    assert process.stdout
    line = process.stdout.readline()
    if not line:
        raise ProgramError(f"the lasting client in {host} ended with {process.wait()}")
    return [Flow(*one) for one in json.loads(line)]
