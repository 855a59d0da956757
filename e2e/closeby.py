"""EFFECT: a real closeby daemon in a node's network namespace, as an operator would start it."""

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from e2e.world.netns import run_in

CLOSEBY = Path(sys.executable).with_name("closeby")
_HEALTHZ_PORT = 10256
_POLL_S = 0.05
_TAIL_LINES = 15


class DaemonError(Exception):
    """A daemon ended, or isn't ready in time; the text ends with the last lines of its log."""


class Closeby:
    """One running daemon. Its log and its control socket lie in the folder: NODE.log and NODE.sock.

    It dies with the thread that started it, and leads a session of its own, so that Ctrl-C reaches only us.
    """

    def __init__(self, netns: str, node: str, source: Sequence[str], folder: Path) -> None:
        self.node = node
        self.socket = folder / f"{node}.sock"
        self._log = folder / f"{node}.log"
        self._netns = netns
        command = [str(CLOSEBY), "run", *source, "--hostname-override", node, "--control-socket", str(self.socket)]
        command += ["--healthz-bind-address", f"0.0.0.0:{_HEALTHZ_PORT}", "--metrics-bind-address", "0.0.0.0:10249"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["ip", "netns", "exec", netns, "setpriv", "--pdeathsig", "KILL", "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process id of the daemon itself: `ip` and setpriv replace themselves by it."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def wait_ready(self, timeout_s: float) -> None:
        """Returns once /readyz says 200, which is after the first sync. DaemonError if it doesn't in time."""
        deadline = time.monotonic() + timeout_s
        while (status := run_in(self._netns, _ask_readyz)) != http.client.OK:
            if self._process.poll() is not None:
                raise DaemonError(f"closeby on {self.node} ended with {self._process.returncode}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise DaemonError(f"closeby on {self.node} isn't ready (readyz {status}):\n{self.log_tail()}")
            time.sleep(_POLL_S)

    def log_tail(self) -> str:
        """The last lines of the log."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])

    def log_events(self) -> Iterator[dict[str, Any]]:
        """The log's whole lines so far; one that isn't JSON is left out."""
        whole, _, _ = self._log.read_text(errors="replace").rpartition("\n")
        for line in whole.splitlines():
            if line.startswith("{"):
                yield json.loads(line)

    def terminate(self) -> None:
        """SIGTERM, without waiting."""
        self._process.terminate()

    def stop(self, grace_s: float = 3.0) -> int:
        """SIGTERM, and SIGKILL after the grace time; the exit code. Its rules stay in the kernel."""
        self._process.terminate()
        try:
            return self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def _ask_readyz() -> int:
    """The status; 0 while nobody listens."""
    connection = http.client.HTTPConnection("127.0.0.1", _HEALTHZ_PORT, timeout=2.0)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()
