"""EFFECT: `closeby announce` as a process on a node of a world, and what it is asked."""

import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import Literal

from e2e.world.netns import command_in
from endpointslice.types import NodeName
from proxy.announcer.control import Request, ask
from proxy.announcer.status import Status

METRICS_PORT = 7476
KEY = "a key of the tests, which is no secret"
FEED = "feed.sock"
_ROOT = Path(__file__).parent.parent
_END_S = 60.0


class AnnouncerProcess:
    """One node's. It dies with the thread that started it; `folder` has its sockets, key and log."""

    def __init__(self, node: str, netns: str, folder: Path, *flags: str) -> None:
        """`folder / FEED` is where the node's proxy has its socket. Another one of the node goes on in its place."""
        self.node = node
        self._folder = folder
        self._ready = folder / f"ready-{secrets.token_hex(4)}"
        keys = folder / "keys"
        keys.mkdir(parents=True, exist_ok=True)
        (keys / "1").write_text(KEY)
        command = [sys.executable, "-m", "proxy", "announce", "--hostname-override", node, "--keys", str(keys)]
        command += ["--proxy-socket", str(folder / FEED), "--announcer-control", str(self.control)]
        command += ["--memory", str(folder / "memory.json"), "--log-format", "json"]
        command += ["--ready-file", str(self._ready), *flags]
        with (folder / "announcer.log").open("ab") as log:
            self._process = subprocess.Popen(
                command_in(netns, ["setpriv", "--pdeathsig", "KILL", "--", *command]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=_ROOT,
            )

    @property
    def control(self) -> Path:
        """Its own socket."""
        return self._folder / "announcer.sock"

    def status(self, without: str = "") -> Status | None:
        """What it says; None while it doesn't answer. ChildProcessError, with its log's end, if it has ended."""
        if self._process.poll() is not None:
            end = "\n".join((self._folder / "announcer.log").read_text(errors="replace").splitlines()[-5:])
            raise ChildProcessError(f"the announcer on {self.node} ended with {self._process.returncode}: {end}")
        try:
            return ask(self.control, Request("status", NodeName(without)))
        except OSError:
            return None

    def is_ready(self) -> bool:
        """Whether it answers for what it owns."""
        return self._ready.exists()

    def command(self, word: Literal["drain", "undrain"]) -> None:
        """Say so to it. OSError if it doesn't answer."""
        ask(self.control, Request(word))

    def terminate(self) -> int:
        """SIGTERM, and the exit code."""
        self._process.terminate()
        return self._process.wait(_END_S)

    def kill(self) -> None:
        """SIGKILL, as by a crash; nothing happens if it has ended."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait(_END_S)
