"""EFFECT: a place made of network namespaces, which is there while a block runs and leaves nothing behind."""

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from e2e.world import netns
from e2e.world.processes import stop_programs
from e2e.world.signals import exit_on_signals, signals_held


class Place(ABC):
    """All its namespaces' names begin with `prefix`. Used as a context manager; needs root.

    A constructor only plans; entering builds, and sweeps what killed runs left behind.
    """

    def __init__(self, label: str) -> None:
        self.prefix = netns.unique_prefix(label)
        self._handlers = ExitStack()

    @abstractmethod
    def _build(self) -> None:
        """Make everything; where that fails half-way, what there is of it is removed."""

    @abstractmethod
    def _take_programs(self) -> Iterable[subprocess.Popen[str]]:
        """The programs that run there, which are about to be killed; called again, none."""

    def __enter__(self) -> Self:
        netns.sweep_namespaces()
        self._handlers.enter_context(exit_on_signals())
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove everything; a signal that arrives meanwhile is seen afterwards."""
        with signals_held(), self._handlers:
            stop_programs(self._take_programs())
            netns.remove_namespaces(netns.list_namespaces(self.prefix))
