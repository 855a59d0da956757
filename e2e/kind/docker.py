"""EFFECT: commands that talk to one dockerd: docker, kind and kubectl."""

import os
import re
import subprocess
from pathlib import Path
from typing import IO, NamedTuple

from e2e.world.netns import command_in

_LIMIT_S = 600.0
_SHOWN_LINES = 25
_FRAME = re.compile(r"^\S+\n[ \t]+\S+\.(?:go|s):\d+\n", re.MULTILINE)


class CommandError(Exception):
    """A command failed; the text is the command and the end of what it said."""


class Docker(NamedTuple):
    """Where a dockerd is reached. Published ports, and the nodes' addresses, are those of its network namespace."""

    socket: Path | None = None  # None: wherever the docker command looks
    netns: str | None = None  # None: this one

    def environment(self) -> dict[str, str]:
        """For docker, and for kind, which runs it."""
        return {**os.environ, **({"DOCKER_HOST": f"unix://{self.socket}"} if self.socket else {})}

    def inside(self, argv: list[str]) -> list[str]:
        """The command as run where dockerd's ports and nodes are reached."""
        return command_in(self.netns, argv) if self.netns else argv

    def run(self, *argv: str, text: str | None = None, limit_s: float = _LIMIT_S) -> str:
        """What the command printed on stdout, run with `text` as its input. CommandError."""
        return self._run(argv, text, None, limit_s)

    def run_on(self, stdin: IO[bytes], *argv: str, limit_s: float = _LIMIT_S) -> str:
        """As `run`, with a file or a pipe as the input."""
        return self._run(argv, None, stdin, limit_s)

    def works(self, *argv: str) -> bool:
        """Whether the command succeeds; what it says is lost."""
        try:
            self.run(*argv)
        except CommandError:
            return False
        return True

    def _run(self, argv: tuple[str, ...], text: str | None, stdin: IO[bytes] | None, limit_s: float) -> str:
        shown = " ".join(argv[:4])
        try:
            with subprocess.Popen(
                self.inside(list(argv)),
                env=self.environment(),
                stdin=stdin or subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            ) as process:
                try:
                    output, complaint = process.communicate(None if stdin else (text or "").encode(), timeout=limit_s)
                except subprocess.TimeoutExpired as error:
                    process.kill()
                    raise CommandError(f"{shown}: not done within {limit_s:g} s") from error
        except FileNotFoundError as error:
            raise CommandError(f"{argv[0]} is missing: `.ci/setup kind` installs what kind needs") from error
        if process.returncode != 0:
            said = without_stacks((output + complaint).decode(errors="replace"))[-_SHOWN_LINES:]
            raise CommandError(f"{shown} ended with {process.returncode}:\n" + "\n".join(said))
        return output.decode(errors="replace")


def without_stacks(said: str) -> list[str]:
    """The lines but for Go's stack traces, each frame of which is a function and a file:line."""
    return _FRAME.sub("", said).splitlines()
