"""EFFECT: connections from namespaces of a world or of pods, counted (`probe`) or over time (`Traffic`)."""

import statistics
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from enum import StrEnum
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from e2e.world.hosts import Host
from e2e.world.processes import Clients, Errand, read_answer, start_client, stop_programs

_LOOP_PORTS = 4096  # source ports that a stream is given: 16 s of one every 4 ms


class Hosts(Protocol):
    """Whoever has namespaces to connect from: a World, or the pods of a real cluster."""

    def host(self, name: str) -> Host:
        """The host of that name. KeyError."""

    def reserve_ports(self, host: str, number: int) -> int:
        """The first of so many source ports that the host's clients haven't used."""


class Target(NamedTuple):
    """What to connect to, and how often. A try without an answer ends after `timeout_s`."""

    protocol: str  # "tcp" or "udp"
    ip: str
    port: int
    tries: int = 100
    timeout_s: float = 2.0


class Outcome(StrEnum):
    """How an attempt ended."""

    ANSWERED = "answered"
    REFUSED = "refused"
    TIMED_OUT = "timed-out"
    UNREACHABLE = "unreachable"
    BROKEN = "broken"  # reset, or closed in mid-answer


class Record(NamedTuple):
    """One attempt. `name` and `source` are the server's words: who it is, and whom it saw; "" without an answer.

    `resent` says how often the kernel sent a SYN again until one was answered. A busy machine makes an attempt slow,
    and only a lost packet makes this more than 0.
    """

    target: int  # index into the targets
    began: float  # monotonic seconds, the same clock as time.monotonic()
    took_s: float
    outcome: Outcome
    name: str
    source: str
    resent: int = 0


class Tally(NamedTuple):
    """Attempts at one target, counted."""

    seen: Mapping[tuple[str, str], int]  # answers, by the server's name and the source address that it saw
    outcomes: Mapping[Outcome, int]
    median_s: float  # of answered ones, until the whole answer; 0.0 without any
    longest_s: float

    @property
    def answers(self) -> Counter[str]:
        """Answers by the server's name."""
        return _add((name, n) for (name, _), n in self.seen.items())

    @property
    def sources(self) -> Counter[str]:
        """Answers by the source address that the server saw."""
        return _add((source, n) for (_, source), n in self.seen.items())

    @property
    def failed(self) -> int:
        """Attempts without an answer."""
        return sum(n for outcome, n in self.outcomes.items() if outcome is not Outcome.ANSWERED)


def probe(world: Hosts, orders: Mapping[str, Sequence[Target]]) -> dict[str, tuple[Tally, ...]]:
    """For each host its targets' tallies, in their order. All hosts work at once, each on all its targets at once."""
    started: dict[str, subprocess.Popen[str]] = {}
    try:
        for host, targets in orders.items():
            ports = sum(target.tries for target in targets)
            started[host] = start_client(world.host(host).netns, "probe", _order(world, host, targets, ports))
        answers = {host: read_answer(one, f"the client in {host}", list[Record]) for host, one in started.items()}
        return {
            host: tuple(_tally(records, index) for index in range(len(orders[host])))
            for host, records in answers.items()
        }
    finally:
        stop_programs(started.values())


class Traffic:
    """A steady stream of attempts from hosts to targets: every target once an interval, from `start` to `stop`.

    Used as a context manager; leaving it ends the clients.
    """

    def __init__(self, world: Hosts, orders: Mapping[str, Sequence[Target]], interval_s: float = 0.004) -> None:
        self._world = world
        self._orders = orders
        self._interval_s = interval_s
        self._open = ExitStack()

    def __enter__(self) -> Self:
        errands = {host: Errand(self._world.host(host).netns, self._plan(host)) for host in self._orders}
        self._clients = self._open.enter_context(Clients("probe", "the client", list[Record], errands))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def stop(self) -> dict[str, tuple[Record, ...]]:
        """End the streams; all attempts of each host, sorted by when they began."""
        return {host: tuple(sorted(seen, key=lambda r: r.began)) for host, seen in self._clients.end().items()}

    def _plan(self, host: str) -> dict[str, object]:
        return {**_order(self._world, host, self._orders[host], _LOOP_PORTS), "interval_s": self._interval_s}


def _order(world: Hosts, host: str, targets: Iterable[Target], ports: int) -> dict[str, object]:
    """What the client is told; so many source ports of each protocol are its own."""
    return {"targets": [one._asdict() for one in targets], "first_port": world.reserve_ports(host, ports)}


def _tally(records: Iterable[Record], index: int) -> Tally:
    mine = [record for record in records if record.target == index]
    answered = [record for record in mine if record.outcome is Outcome.ANSWERED]
    took = [record.took_s for record in answered]
    return Tally(
        seen=Counter((record.name, record.source) for record in answered),
        outcomes=Counter(record.outcome for record in mine),
        median_s=statistics.median(took) if took else 0.0,
        longest_s=max(took, default=0.0),
    )


def _add(counts: Iterable[tuple[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for key, n in counts:
        total[key] += n
    return total
