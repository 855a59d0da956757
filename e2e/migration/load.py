"""EFFECT: the load on the node that moves, and what became of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import NamedTuple, Self

from e2e.world.clients import Hosts, Outcome, Record, Target, Traffic
from e2e.world.processes import Clients, Errand

_EVERY_S = 0.05  # five targets, each once: 100 attempts a second

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
    resent: int  # answered, but only since the kernel sent a SYN again: a packet was lost
    flows: int
    broken: int  # established connections that ended
    lost: int  # questions of established flows without an answer
    moved: int  # answers from another server than the flow began with

    @property
    def total(self) -> int:
        """All of it; 0 is the aim."""
        return sum(self.failed.values()) + self.resent + self.broken + self.lost + self.moved


class Load:
    """New connections and lasting flows, from entering the block to `stop`: each target once every `every_s`."""

    def __init__(self, world: Hosts, new: Targets, lasting: Targets, every_s: float = _EVERY_S) -> None:
        self._world = world
        self._traffic = Traffic(world, new, every_s)
        self._new, self._lasting, self._every_s = new, lasting, every_s
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            errands = {host: Errand(self._world.host(host).netns, self._order(host)) for host in self._lasting}
            self._flows = opening.enter_context(Clients("flows", "the lasting client", list[Flow], errands))
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
        return self._traffic.stop(), self._flows.end()

    def _order(self, host: str) -> dict[str, object]:
        flows = [one._asdict() for one in self._lasting[host] for _ in range(one.tries)]
        return {"interval_s": self._every_s, "flows": flows}


def count(ended: Sequence[tuple[str, Record]], flows: Sequence[Flow]) -> Cost:
    """Pure: the sum of it; each record with who asked whom."""
    return Cost(
        attempts=len(ended),
        failed=Counter(f"{who}: {record.outcome}" for who, record in ended if record.outcome is not Outcome.ANSWERED),
        resent=sum(record.outcome is Outcome.ANSWERED and record.resent > 0 for _, record in ended),
        flows=len(flows),
        broken=sum(bool(flow.broken) for flow in flows),
        lost=sum(flow.lost for flow in flows),
        moved=sum(flow.moved for flow in flows),
    )
