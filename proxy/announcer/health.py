"""EFFECT: whether the announcer is well, for who would restart it or goes on with an update once it works."""

import time
from collections.abc import Callable
from pathlib import Path

from proxy.l2.state import State

STUCK_S = 10.0  # it wakes up for each heartbeat, every second at the least


class Health:
    """Noted by the loop's thread, asked by the metrics server's.

    The file is there from the moment that this process answers for what it owns. It is no page of the server: while
    an update runs, two processes share the port, and one may be asked about the other.
    """

    def __init__(self, ready_file: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        """A file of an earlier process is removed; OSError if that, or a new one, isn't permitted."""
        self._file = ready_file
        self._ready = ready_file is None
        self._told = False
        self._resting = False
        self._clock = clock
        self._woken_s = clock()
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)

    def told(self) -> None:
        """The proxy said what it serves, or isn't there."""
        self._told = True

    def woke(self, state: State) -> None:
        """The loop is alive; ready once it was told, and listens on no wire any more."""
        self._woken_s = self._clock()
        if not self._ready and self._told and not any(wire.listening for wire in state.wires.values()):
            self._ready = True
            if self._file is not None:
                self._file.touch()

    def rest(self) -> None:
        """Another process goes on in the place of this one."""
        self._resting = True

    def is_alive(self) -> bool:
        """Whether the loop still turns, or has come to its end."""
        return self._resting or self._clock() - self._woken_s < STUCK_S
