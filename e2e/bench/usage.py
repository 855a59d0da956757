"""EFFECT: what processes use, from /proc: CPU time and memory, those of their children included."""

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

_EVERY_S = 0.02
_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


class Memory(NamedTuple):
    """Megabytes (1,000,000 bytes)."""

    resident: float  # now
    peak: float  # of the process alone, since its start
    peak_tree: float  # of the process and its children together, sampled


def cpu_seconds(pid: int) -> float:
    """User and system time of the process and of those children that it has waited for, to 10 ms."""
    fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / _TICKS


class MemoryWatch:
    """Samples a process and its children from entering to leaving; a child may be there for milliseconds only."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak_kb = 0
        self._ended = threading.Event()
        # A Ctrl-C just after the start leaves nobody to end it: it must not keep the interpreter from ending.
        self._thread = threading.Thread(target=self._run, name="memory-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def read(self) -> Memory:
        """The process's memory now, and the peaks so far."""
        resident, peak = _status_kb(self._pid, "VmRSS"), _status_kb(self._pid, "VmHWM")
        return Memory(*(kb * 1024 / 1e6 for kb in (resident, peak, max(self._peak_kb, peak))))

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self._peak_kb = max(self._peak_kb, sum(_status_kb(pid, "VmRSS") for pid in _tree(self._pid)))


def _tree(pid: int) -> list[int]:
    """The process and what descends from it; a child belongs to the thread that forked it."""
    found = [pid]
    for task in _PROC.glob(f"{pid}/task/*/children"):
        try:
            children = task.read_text().split()
        except OSError:  # the thread has ended
            continue
        for child in children:
            found += _tree(int(child))
    return found


def _status_kb(pid: int, name: str) -> int:
    """A line of /proc/PID/status; 0 for a process that is gone."""
    try:
        status = (_PROC / str(pid) / "status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{name}:")), 0)
