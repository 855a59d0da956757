"""`python -m e2e.bench`: closeby and kube-proxy side by side."""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from e2e.bench.proxies import closeby_spec, peer_spec
from e2e.bench.report import describe_kube_proxy, describe_machine, write_markdown
from e2e.bench.rig import run_rig
from e2e.bench.rows import COLUMNS, Row, render_cells, render_json
from e2e.bench.scale import Scale, parse_scale
from e2e.bench.works import Bench, Effort, Steps
from e2e.binaries.build import BuildError, build
from e2e.console import open_console
from e2e.controlplane.processes import ComponentError
from e2e.world.netns import NetnsError

_DEFAULT_SCALES = ("1000x5", "10000x5")
_USUAL = Effort()
_WIDTH = 120  # of the table in a log


class ScaleType(click.ParamType[Scale]):
    """SERVICESxENDPOINTS."""

    name = "services x endpoints"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Scale:
        """A Scale, or click's complaint."""
        if isinstance(value, Scale):
            return value
        try:
            return parse_scale(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command()
@click.option("--scale", "scales", type=ScaleType(), multiple=True, help="SERVICESxENDPOINTS; may be given again.")
@click.option("--peer/--no-peer", default=True, show_default=True, help="Measure kube-proxy as well.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="JSON lines go here, not to stdout.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the tables and the machine to this file.")
@click.option("--starts", default=_USUAL.starts, show_default=True, help="First syncs of each proxy.")
@click.option("--patches", default=_USUAL.patches, show_default=True, help="Single changes, for their delay.")
@click.option("--changes", default=_USUAL.changes, show_default=True, help="Changes in a stream, for their CPU time.")
@click.option("--flows", default=_USUAL.flows, show_default=True, help="UDP flows whose endpoint leaves; 0 for none.")
@click.option("--seconds", default=_USUAL.round_s, show_default=True, help="Of each of the rounds of connections.")
@click.option("--folder", type=click.Path(path_type=Path), help="Work here, and leave the logs of all processes.")
def bench(**flags: Any) -> None:  # noqa: ANN401  # click passes flags by keyword, each typed by its option
    """Measure closeby and the real kube-proxy on one API server; print JSON lines and a table."""
    console = open_console()
    if not console.is_terminal:
        console.width = _WIDTH
    scales: tuple[Scale, ...] = flags["scales"] or tuple(parse_scale(text) for text in _DEFAULT_SCALES)
    effort = msgspec.structs.replace(
        _USUAL,
        starts=flags["starts"],
        patches=flags["patches"],
        changes=flags["changes"],
        flows=flags["flows"],
        round_s=flags["seconds"],
    )
    try:
        binary = build("kube", console)
        with _folder(flags["folder"]) as folder:
            where = Where(binary, folder, peer=flags["peer"])
            rows = [row for scale in scales for row in _run(where, scale, effort, console)]
    except (BuildError, ComponentError, NetnsError, TimeoutError) as error:
        console.print(f"bench: {error}", style="red", markup=False, soft_wrap=True)
        sys.exit(1)
    lines = "".join(render_json(row) + "\n" for row in rows)
    if flags["json_file"] is not None:
        flags["json_file"].write_text(lines)
    else:
        sys.stdout.write(lines)
        sys.stdout.flush()
    console.print(_table(rows))
    if flags["markdown"] is not None:
        write_markdown(flags["markdown"], rows, describe_machine(describe_kube_proxy(binary)))


class Where(NamedTuple):
    """What the runs of all scales share."""

    binary: Path
    folder: Path
    peer: bool


def _run(where: Where, scale: Scale, effort: Effort, console: Console) -> list[Row]:
    """The rows of one scale, with a control plane and a world of its own."""
    folder = where.folder / str(scale)
    with _steps(console) as steps:
        with steps(f"control plane for {scale}", 1), ExitStack() as stack:
            rig = stack.enter_context(run_rig(where.binary, folder))
            up = stack.pop_all()
        with up:
            specs = (closeby_spec(rig, folder), *([peer_spec(rig, folder, where.binary)] if where.peer else []))
            return Bench(rig, specs, effort, steps).run(scale)


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="closeby-bench-") as made:
        yield Path(made)


@contextmanager
def _steps(console: Console) -> Iterator[Steps]:
    """A bar for the step under way; each that is done leaves a line, also where there is no terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:

        @contextmanager
        def step(what: str, size: float) -> Iterator[Callable[[float], None]]:
            began = time.monotonic()
            task = progress.add_task(what, total=size)
            yield partial(progress.advance, task)
            progress.remove_task(task)
            console.print(f"{what}: {time.monotonic() - began:.1f} s", markup=False, highlight=False)

        yield step


def _table(rows: list[Row]) -> Table:
    table = Table(title="closeby and kube-proxy side by side; ratio: kube-proxy / closeby")
    for number, column in enumerate(COLUMNS):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*render_cells(row))
    return table


if __name__ == "__main__":
    bench()
