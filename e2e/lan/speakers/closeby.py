"""EFFECT: `closeby announce` as a Speaker. OPEN: the command doesn't exist yet; see README.md.

What is guessed stands in `render_command` and `HEARTBEATS`, nowhere else.
"""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from e2e.lan.members import Member
from e2e.lan.speakers.daemons import Daemons

HEARTBEATS = ("meta l4proto udp",)  # open: only their ports, once they are known


class Closeby:
    """One announcer a node, by one of its profiles of detection."""

    heartbeats: Sequence[str] = HEARTBEATS

    def __init__(self, folder: Path, profile: str) -> None:
        self.name = f"closeby {profile}"
        self._folder = folder
        self._profile = profile
        self._daemons = Daemons(folder, lambda node: render_command(node, folder, profile))

    def missing(self) -> str | None:
        """The command itself."""
        asked = subprocess.run([*_CLOSEBY, "announce", "--help"], capture_output=True, check=False)
        return None if asked.returncode == 0 else "this closeby has no `announce` yet"

    def start(self, node: Member) -> None:
        """Run."""
        self._daemons.start(node)

    def end(self, node: Member) -> None:
        """A restart's first half: no drain, nothing moves if it comes back."""
        self._daemons.end(node)

    def drain(self, node: Member) -> None:
        """Open: the quiet hand-over is asked for by a command of its own."""
        raise NotImplementedError(f"closeby has no `drain` yet, for {node.name}")

    def kill(self, node: Member) -> None:
        """Nobody answers on the node from now on."""
        self._daemons.kill(node)

    def stop(self, node: Member) -> None:
        """As a starved process."""
        self._daemons.send(node, signal.SIGSTOP)

    def cont(self, node: Member) -> None:
        """Go on."""
        self._daemons.send(node, signal.SIGCONT)

    def close(self) -> None:
        """None runs; an announcer configures nothing."""
        self._daemons.close()


def render_command(node: Member, folder: Path, profile: str) -> list[str]:
    """A node's command line, guessed: its name, its profile, and the socket by which a proxy hands it its table."""
    return [
        *_CLOSEBY,
        "announce",
        f"--hostname-override={node.name}",
        f"--detection={profile}",
        f"--socket={folder / node.name}.sock",
    ]


_CLOSEBY = (sys.executable, "-m", "proxy")
