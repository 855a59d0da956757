"""EFFECT: what a process has used so far, from /proc: finer than the 10 ms of its stat file."""

from pathlib import Path
from typing import NamedTuple

_NS = 1e-9


class Usage(NamedTuple):
    """Since its start, over all of its threads."""

    cpu_s: float
    sleeps: int  # how often a thread waited for something: each ended by a wake-up
    resident_mb: float  # now; megabytes of 1,000,000 bytes


def read_usage(pid: int) -> Usage:
    """OSError if it has ended."""
    folder = Path("/proc") / str(pid)
    cpu_ns, sleeps = 0, 0
    for task in (folder / "task").iterdir():
        cpu_ns += int((task / "schedstat").read_text().split()[0])
        sleeps += _line(task / "status", "voluntary_ctxt_switches")
    return Usage(cpu_ns * _NS, sleeps, _line(folder / "status", "VmRSS") * 1024 / 1e6)


def _line(path: Path, name: str) -> int:
    return next(int(line.split()[1]) for line in path.read_text().splitlines() if line.startswith(f"{name}:"))
