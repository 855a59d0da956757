"""What the loop tells others: what the kernel has agreed to, and who follows it."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol, runtime_checkable

from endpointslice.snapshot import Snapshot, Touched
from endpointslice.types import IP
from proxy.kernel.change import Change


class Commit(NamedTuple):
    """What the kernel has agreed to."""

    snapshot: Snapshot
    touched: Touched | None  # since the last commit; None: anything may differ
    node_addresses: frozenset[IP] = frozenset()  # that NodePorts answer on
    change: Change = Change({})  # what this write deleted and added


class Observer(Protocol):
    """Work that follows a commit, off the loop's path: whoever observes hands it to a thread of its own."""

    def committed(self, commit: Commit) -> None:
        """Called by the loop's thread; returns at once."""
        ...


@runtime_checkable
class Forerunner(Protocol):
    """An observer that must know of a write before the first packet meets it."""

    def writing(self, change: Change) -> None:
        """Called by the loop's thread before the kernel is asked, which may refuse; returns at once."""
        ...


def announce(forerunners: Iterable[Forerunner], change: Change) -> None:
    """Tell all of them."""
    for forerunner in forerunners:
        forerunner.writing(change)
