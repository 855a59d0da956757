"""EFFECT: `closeby announce` as a Speaker, beside a `closeby run` on each node that tells it what the kernel serves."""

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from e2e.lan.members import Member
from e2e.lan.speakers.daemons import Daemons
from e2e.lan.speakers.service import write_service
from e2e.world.netns import command_in
from e2e.world.processes import ProgramError

_CLOSEBY = (sys.executable, "-m", "proxy")
_FIRST_PORT = 7477
_PORTS = 4
_READY_S = 60.0
_POLL_S = 0.02
_STARTED = '"event": "started"'  # in its log
_KEY = "a key of the benchmark's, which is no secret"


class Closeby:
    """One proxy and one announcer a node, the latter by one of its profiles. What is done is done to the announcer.

    The proxies read manifests, not from an API server. A node that was drained takes part again by `start`.
    """

    heartbeats: Sequence[str] = (f"udp dport {_FIRST_PORT}-{_FIRST_PORT + _PORTS - 1}",)

    def __init__(self, folder: Path, profile: str) -> None:
        self.name = f"closeby {profile}"
        self._folder = folder
        self._profile = profile
        self._manifests, self._away = folder / "manifests", folder / "away"
        self._nodes: set[Member] = set()  # that have a proxy
        self._drained: set[Member] = set()
        self._proxies = Daemons(folder / "run", self._render_run)
        self._announcers = Daemons(folder / "announce", self._render_announce)

    def missing(self) -> str | None:
        """The command itself."""
        asked = subprocess.run([*_CLOSEBY, "announce", "--help"], capture_output=True, check=False)
        return None if asked.returncode == 0 else "this closeby has no `announce` yet"

    def start(self, node: Member) -> None:
        """Both daemons."""
        (self._folder / "keys").mkdir(exist_ok=True)
        (self._folder / "keys" / "1").write_text(_KEY)
        if not self._away.exists():
            write_service(self._manifests)
        self._nodes.add(node)
        self._proxies.start(node)
        self._announcers.start(node)
        if node in self._drained:
            self._ask(node, "drain", "--undo")
            self._drained.discard(node)

    def end(self, node: Member) -> None:
        """No drain: nothing moves if it comes back within three seconds."""
        self._announcers.end(node)

    def restart(self, node: Member) -> None:
        """As by a DaemonSet with maxSurge 1: the next one starts, and once it says so the first one is ended."""
        starts = self._announcers.read_log(node).count(_STARTED)
        before = self._announcers.start_beside(node)
        try:
            deadline = time.monotonic() + _READY_S
            while self._announcers.read_log(node).count(_STARTED) == starts:
                if time.monotonic() > deadline:
                    raise ProgramError(f"the announcer on {node.name} isn't ready: {self._announcers.tail(node)}")
                time.sleep(_POLL_S)
        finally:
            before.terminate()
            before.wait()

    def drain(self, node: Member) -> None:
        """The quiet hand-over, with its usual time of grace."""
        self._ask(node, "drain")
        self._drained.add(node)

    def kill(self, node: Member) -> None:
        """Nobody answers on the node from now on; its kernel serves on."""
        self._announcers.kill(node)

    def stop(self, node: Member) -> None:
        """As a starved process."""
        self._announcers.send(node, signal.SIGSTOP)

    def cont(self, node: Member) -> None:
        """Go on."""
        self._announcers.send(node, signal.SIGCONT)

    def lose_api(self) -> None:
        """The proxies' folder of manifests goes, which they take as an outage: what they know stands."""
        self._manifests.rename(self._away)

    def close(self) -> None:
        """None runs, no kernel has the proxies' tables, and the next start remembers nothing."""
        self._announcers.close()
        self._proxies.close()
        cleanups = [
            subprocess.Popen(
                command_in(node.netns, [*_CLOSEBY, "cleanup"]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            for node in self._nodes
        ]
        for cleanup in cleanups:
            cleanup.wait()
        if self._away.exists():
            self._away.rename(self._manifests)
        for memory in self._folder.glob("*.memory"):
            memory.unlink()
        self._nodes.clear()
        self._drained.clear()

    def _ask(self, node: Member, *command: str) -> None:
        """ProgramError with the announcer's own complaint."""
        argv = [*_CLOSEBY, *command, f"--announcer-control={self._path(node, 'control')}"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ProgramError(f"closeby {' '.join(command)} on {node.name}: {done.stderr.strip()}")

    def _render_run(self, node: Member) -> list[str]:
        return [
            *(*_CLOSEBY, "run", f"--hostname-override={node.name}", f"--manifests={self._manifests}"),
            *(f"--announcer-socket={self._path(node, 'feed')}", f"--control-socket={self._path(node, 'dump')}"),
        ]

    def _render_announce(self, node: Member) -> list[str]:
        return [
            *(*_CLOSEBY, "announce", f"--hostname-override={node.name}", f"--profile={self._profile}"),
            *(f"--keys={self._folder / 'keys'}", f"--port={_FIRST_PORT}", f"--memory={self._path(node, 'memory')}"),
            *(f"--proxy-socket={self._path(node, 'feed')}", f"--announcer-control={self._path(node, 'control')}"),
            "--metrics-bind-address=",
        ]

    def _path(self, node: Member, what: str) -> Path:
        return self._folder / f"{node.name}.{what}"
