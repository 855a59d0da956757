"""EFFECT: our own small programs as children in a namespace, under a Python that starts in some 30 ms.

The kernel kills a child when the thread that started it ends (prctl PR_SET_PDEATHSIG), so also when Python is killed.
Each leads a session of its own: Ctrl-C reaches only us.

A client takes an order, a line of JSON on stdin, and its last line on stdout is what it saw, as JSON. One that works on
until it is told otherwise finishes at the end of stdin.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Generic, NamedTuple, Self, TypeVar

import msgspec

from e2e.world.netns import command_in

T = TypeVar("T")

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


def start_client(netns: str, module: str, order: Mapping[str, object]) -> subprocess.Popen[str]:
    """As `start_program`, with its order given."""
    process = start_program(netns, module)
    try:
        give_order(process, order)
    except BaseException:
        stop_programs([process])
        raise
    return process


def give_order(process: subprocess.Popen[str], order: Mapping[str, object]) -> None:
    """Tell a client what to do. BrokenPipeError if it ended."""
    assert process.stdin
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()


def read_answer(process: subprocess.Popen[str], what: str, answer: type[T]) -> T:
    """What a client saw, once it says so; tuples are lists on the wire. ProgramError if it ended instead."""
    assert process.stdout
    line = process.stdout.readline()
    if not line:
        raise ProgramError(f"{what} ended with {process.wait()}")
    return msgspec.json.decode(line, type=answer)


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


class Errand(NamedTuple):
    """A client's namespace, and its order."""

    netns: str
    order: Mapping[str, object]


class Clients(Generic[T]):
    """One client for each name, all of one program: at work when the block begins, killed when it is left."""

    def __init__(self, module: str, what: str, answer: type[T], errands: Mapping[str, Errand]) -> None:
        """`what` are the words for a client in errors: "the client"; `answer` is how each says what it saw."""
        self._module, self._what, self._answer = module, what, answer
        self._errands = errands
        self._running: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Self:
        try:
            for name, (netns, order) in self._errands.items():
                self._running[name] = start_client(netns, self._module, order)
            for name, process in self._running.items():
                wait_ready(process, f"{self._what} in {name}")
        except BaseException:
            stop_programs(self._running.values())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stop_programs(self._running.values())

    def end(self) -> dict[str, T]:
        """What each saw, once what is on its way has ended. ProgramError if one ended before."""
        for process in self._running.values():
            assert process.stdin
            process.stdin.close()
        return {
            name: read_answer(process, f"{self._what} in {name}", self._answer)
            for name, process in self._running.items()
        }
