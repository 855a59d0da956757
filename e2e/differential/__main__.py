"""`python -m e2e.differential`: random worlds for closeby and for the real kube-proxy, and where they part."""

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import SystemRandom

import click
from rich.console import Console

from e2e.binaries.build import BuildError, build
from e2e.console import open_console
from e2e.controlplane.api import ApiError, UnreachableError
from e2e.controlplane.processes import ComponentError
from e2e.differential.generate import make_world
from e2e.differential.report import Difference, describe, write_difference
from e2e.differential.rig import run_rig
from e2e.differential.run import Runner
from e2e.world.netns import NetnsError
from e2e.world.processes import ProgramError

_DIFFERENCES = Path("differences")
_EVERY = 25  # worlds between two lines


@click.command()
@click.option("--worlds", default=50, show_default=True, help="How many.")
@click.option("--seed", type=int, help="Of the first world; the others' follow. By chance where it isn't given.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Work here, and leave logs and differences; by default differences are left in ./differences.",
)
def differential(worlds: int, seed: int | None, folder: Path | None) -> None:
    """Give random worlds to closeby and to kube-proxy; print and keep every difference that isn't meant to be.

    Exit code 1 if there is one, or a world that could not be judged; 2 if the run broke off.
    """
    console = open_console(soft_wrap=True)
    first = SystemRandom().randrange(1_000_000) if seed is None else seed
    console.print(f"seeds {first} to {first + worlds - 1}", highlight=False)
    try:
        binary = build("kube", console)
        with _folder(folder) as where, run_rig(binary, where) as rig:
            runner = Runner(rig)
            told = _Teller(console, runner, folder or _DIFFERENCES)
            try:
                _judge(runner, range(first, first + worlds), told)
            finally:
                told.sum_up()
    except (BuildError, ComponentError, NetnsError, TimeoutError, ProgramError, ApiError, UnreachableError) as error:
        console.print(f"differential: {error}", style="red", markup=False)
        sys.exit(2)
    sys.exit(1 if told.folders or told.unjudged else 0)


def _judge(runner: Runner, seeds: range, told: "_Teller") -> None:
    """All worlds, also after a difference; Ctrl-C ends the run before its last seed.

    TimeoutError only if a proxy isn't in sync without any Service either.
    """
    with suppress(KeyboardInterrupt):
        for seed in seeds:
            try:
                told(runner.judge(make_world(seed)))
            except (TimeoutError, ApiError, UnreachableError) as error:
                told.tell_unjudged(seed, error)
                runner.begin_anew()


class _Teller:
    """Says how far it is, and what was found."""

    def __init__(self, console: Console, runner: Runner, folder: Path) -> None:
        self._console = console
        self._runner = runner
        self._folder = folder
        self._began = time.monotonic()
        self._told_once = 0
        self.folders: list[Path] = []  # of the differences so far
        self.unjudged: list[int] = []  # seeds

    def __call__(self, difference: Difference | None) -> None:
        """One world more."""
        if difference is not None:
            self.folders.append(write_difference(self._folder, difference))
            self._say(f"{describe(difference)}  {self.folders[-1]}")
        counts = self._runner.counts
        for line in counts.seen_once[self._told_once :]:
            self._say(f"seen once, not when its world was repeated: {line}")
        self._told_once = len(counts.seen_once)
        if counts.worlds % _EVERY == 0:
            took_s = time.monotonic() - self._began
            self._say(
                f"{counts.worlds} worlds, {counts.probes} probes, {len(self.folders)} differences, {took_s:.0f} s, "
                f"of that {counts.apply_s:.0f} s until both are in sync, {counts.probe_s:.0f} s of probing"
            )

    def tell_unjudged(self, seed: int, error: Exception) -> None:
        """A world that could not be judged: the API refused it, or a proxy didn't follow."""
        self.unjudged.append(seed)
        self._say(f"seed {seed}: {error}")

    def sum_up(self) -> None:
        """All in one line, and where the differences are."""
        counts = self._runner.counts
        meant = ", ".join(f"{name}: {number}" for name, number in counts.wanted.most_common()) or "none"
        self._say(
            f"{counts.worlds} worlds, {counts.states} states, {counts.probes} probes: {len(self.folders)} differences, "
            f"{len(counts.seen_once)} seen once, {len(self.unjudged)} worlds not judged; meant to be: {meant}"
        )
        for folder in self.folders:
            self._say(str(folder))

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    """The folder given, or one for the run."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="closeby-diff-") as made:
        yield Path(made)


if __name__ == "__main__":
    differential()
