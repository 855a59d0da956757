"""EFFECT: one daemon a node, in its namespace, with a log; signals reach its children too."""

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from e2e.lan.members import Member
from e2e.world.netns import command_in
from e2e.world.processes import ProgramError

_END_S = 30.0


class Daemons:
    """Of one speaker; `command` makes a node's command line. Each log is `NODE.log` in the folder."""

    def __init__(self, folder: Path, command: Callable[[Member], Sequence[str]]) -> None:
        self._folder = folder
        self._command = command
        self._running: dict[Member, subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def start(self, node: Member) -> None:
        """Run it, unless it runs."""
        if self.runs(node):
            return
        with (self._folder / f"{node.name}.log").open("ab") as log:
            self._running[node] = subprocess.Popen(
                command_in(node.netns, ["setpriv", "--pdeathsig", "KILL", "--", *self._command(node)]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_beside(self, node: Member) -> subprocess.Popen[bytes]:
        """Run another one; the one that ran so far, which is the caller's to end."""
        before = self._running.pop(node)
        self.start(node)
        return before

    def read_log(self, node: Member) -> str:
        """Of all that ran on the node."""
        return (self._folder / f"{node.name}.log").read_text(errors="replace")

    def runs(self, node: Member) -> bool:
        """Whether it was started and hasn't ended."""
        process = self._running.get(node)
        return process is not None and process.poll() is None

    def send(self, node: Member, number: signal.Signals) -> None:
        """A signal to all processes of the node's daemon, the youngest first: none may notice that a child is gone.

        ProgramError, with the log's end, if it runs no more.
        """
        if not self.runs(node):
            raise ProgramError(f"the daemon on {node.name} ended before its time: {self.tail(node)}")
        for pid in reversed(list_tree(self._running[node].pid)):
            os.kill(pid, number)

    def end(self, node: Member) -> None:
        """SIGTERM to the daemon itself; SIGKILL to what is left of it after 30 s."""
        if not self.runs(node):
            return
        process = self._running.pop(node)
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._running[node] = process
            self.kill(node)

    def kill(self, node: Member) -> None:
        """SIGKILL to all; returns when the daemon is gone."""
        if self.runs(node):
            self.send(node, signal.SIGKILL)
            self._running.pop(node).wait()

    def close(self) -> None:
        """All are killed."""
        for node in tuple(self._running):
            self.kill(node)

    def tail(self, node: Member) -> str:
        """The last lines of the node's log."""
        log = self._folder / f"{node.name}.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-5:]) if log.exists() else "no log"


def list_tree(pid: int) -> list[int]:
    """The process and all below it, parents first. What ends meanwhile is left out."""
    try:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(one for child in below for one in list_tree(int(child)))]
