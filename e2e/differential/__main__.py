"""`python -m e2e.differential`: random worlds for closeby and for the real kube-proxy, and where they part."""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import SystemRandom

import click
from rich.console import Console

from e2e.controlplane.build import BuildError, build
from e2e.controlplane.processes import ComponentError
from e2e.differential.generate import make_world
from e2e.differential.report import describe, write_difference
from e2e.differential.rig import run_rig
from e2e.differential.run import Difference, Runner
from e2e.world.netns import NetnsError

_EVERY = 25  # worlds between two lines


@click.command()
@click.option("--worlds", default=50, show_default=True, help="How many.")
@click.option("--seed", type=int, help="Of the first world; the others' follow. By chance where it isn't given.")
@click.option("--folder", type=click.Path(path_type=Path), help="Work here, and leave logs and differences.")
def differential(worlds: int, seed: int | None, folder: Path | None) -> None:
    """Give random worlds to closeby and to kube-proxy; print and keep every difference that isn't meant to be."""
    console = Console(stderr=True, soft_wrap=True)
    first = SystemRandom().randrange(1_000_000) if seed is None else seed
    console.print(f"seeds {first} to {first + worlds - 1}", highlight=False)
    try:
        binary = build(console)
        with _folder(folder) as where, run_rig(binary, where) as rig:
            runner = Runner(rig)
            differences = _judge(runner, range(first, first + worlds), _Teller(console, runner, where))
    except (BuildError, ComponentError, NetnsError, TimeoutError) as error:
        console.print(f"differential: {error}", style="red", markup=False)
        sys.exit(2)
    counts = runner.counts
    console.print(
        f"{counts.worlds} worlds, {counts.states} states, {counts.probes} probes: {differences} differences; "
        f"meant to be: {dict(counts.wanted)}",
        highlight=False,
        markup=False,
    )
    sys.exit(1 if differences else 0)


def _judge(runner: Runner, seeds: range, told: Callable[[Difference | None], None]) -> int:
    """The number of differences that nothing explains; Ctrl-C ends the run before its last seed."""
    differences = 0
    with suppress(KeyboardInterrupt):
        for seed in seeds:
            difference = runner.judge(make_world(seed))
            differences += difference is not None
            told(difference)
    return differences


class _Teller:
    """Says how far it is, and what was found."""

    def __init__(self, console: Console, runner: Runner, folder: Path) -> None:
        self._console = console
        self._runner = runner
        self._folder = folder
        self._began = time.monotonic()
        self._told_once = 0

    def __call__(self, difference: Difference | None) -> None:
        if difference is not None:
            made = write_difference(self._folder, difference)
            self._console.print(f"{describe(difference)}  {made}", markup=False, highlight=False)
        counts = self._runner.counts
        for line in counts.seen_once[self._told_once :]:
            self._console.print(f"seen once, not when its world was repeated: {line}", markup=False, highlight=False)
        self._told_once = len(counts.seen_once)
        if counts.worlds % _EVERY == 0:
            took_s = time.monotonic() - self._began
            self._console.print(
                f"{counts.worlds} worlds, {counts.probes} probes, {took_s:.0f} s, "
                f"of that {counts.apply_s:.0f} s until both are in sync, {counts.probe_s:.0f} s of probing",
                highlight=False,
            )


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    """The folder given, or one for the run; a difference outlives it, in the current folder's `differences`."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="closeby-diff-") as made:
        yield Path(made)


if __name__ == "__main__":
    differential()
