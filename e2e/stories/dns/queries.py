"""EFFECT: look-ups from pods of a cluster, steadily, from `start` to `stop`."""

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import NamedTuple, Self

from e2e.world.clients import Hosts
from e2e.world.lookups import Question
from e2e.world.processes import Clients, Errand


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
        self._open = ExitStack()

    def __enter__(self) -> Self:
        errands = {name: Errand(self._hosts.host(name).netns, _order(ask)) for name, ask in self._clients.items()}
        self._resolvers = self._open.enter_context(Clients("lookups", "the resolver", tuple[LookUp, ...], errands))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def stop(self) -> dict[str, tuple[LookUp, ...]]:
        """End the streams, once what is on its way has ended; all look-ups of each client. ProgramError."""
        return self._resolvers.end()


def _order(ask: Ask) -> dict[str, object]:
    return {**ask._asdict(), "targets": [way._asdict() for way in ask.ways]}
