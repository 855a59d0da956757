"""EFFECT: our own small programs as children in a namespace, under a Python that starts in some 30 ms.

The kernel kills a child when the thread that started it ends (prctl PR_SET_PDEATHSIG), so also when Python is killed.
Each leads a session of its own: Ctrl-C reaches only us.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from e2e.world.netns import command_in

_FOLDER = Path(__file__).parent


class ProgramError(Exception):
    """A program of the world ended or never got ready; the text is what it said."""


def start_program(netns: str, module: str, argv: Iterable[str] = ()) -> subprocess.Popen[str]:
    """A module of this package, started in the namespace, with pipes on stdin and stdout."""
    python = [sys.executable, "-I", "-S", str(_FOLDER / f"{module}.py"), *argv]
    return subprocess.Popen(
        command_in(netns, ["setpriv", "--pdeathsig", "KILL", "--", *python]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_ready(process: subprocess.Popen[str], what: str) -> None:
    """Returns once the program said "ready". ProgramError if it ended instead."""
    assert process.stdout
    if process.stdout.readline().strip() != "ready":
        raise ProgramError(f"{what} ended with {process.wait()} before it was ready")


def stop_programs(processes: Iterable[subprocess.Popen[str]]) -> None:
    """Kill them and wait until they are gone."""
    stopped = list(processes)
    for process in stopped:
        process.kill()
    for process in stopped:
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()
