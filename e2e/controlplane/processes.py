"""Processes that can't outlive us: each dies with the thread that started it, and is ended by its own id."""

import subprocess
from pathlib import Path

from e2e.controlplane.netns import command_in

_TAIL_LINES = 25


class ComponentError(Exception):
    """A component ended, or didn't come up; the text ends with the last lines of its log."""


class Component:
    """One running component. Its output goes to `<log_folder>/<name>.log`, appended over restarts.

    The kernel kills it when the *thread* that constructed it ends (prctl PR_SET_PDEATHSIG), so also when Python is
    killed. It leads a session of its own: Ctrl-C reaches only us, and we stop the components in order.
    """

    def __init__(self, name: str, command: list[str], log_folder: Path, netns: str | None) -> None:
        self.name = name
        self.log = log_folder / f"{name}.log"
        bound = ["setpriv", "--pdeathsig", "KILL", "--", *command]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command_in(netns, bound), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def pid(self) -> int:
        """Process id of the component itself (`ip netns exec` and setpriv replace themselves by it)."""
        return self._process.pid

    def check(self) -> None:
        """Raises ComponentError if the component has ended."""
        code = self._process.poll()
        if code is not None:
            raise ComponentError(f"{self.name} ended with {code}; the last of {self.log}:\n{self.log_tail()}")

    def log_tail(self) -> str:
        """The last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])

    def stop(self) -> None:
        """End it at once, by SIGKILL. Returns when it is gone."""
        self._process.kill()
        self._process.wait()
