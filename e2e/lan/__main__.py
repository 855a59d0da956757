"""`python -m e2e.lan`: what clients notice when an address moves between nodes, with closeby and with keepalived."""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import click
from rich.console import Console
from rich.table import Table

from e2e.bench.report import describe_machine, write_between
from e2e.console import open_console
from e2e.lan.lan import Lan
from e2e.lan.measure import Figure
from e2e.lan.members import Family
from e2e.lan.rows import (
    Result,
    RowsError,
    join_results,
    parse_results,
    render_json,
    render_markdown,
    render_table,
)
from e2e.lan.runs import run_once
from e2e.lan.scenarios import BY_FLAG, Scenario
from e2e.lan.speakers.closeby import Closeby
from e2e.lan.speakers.keepalived import Keepalived, read_version
from e2e.lan.speakers.speaker import Speaker
from e2e.lan.watching import SettleError
from e2e.world.netns import NetnsError
from e2e.world.processes import ProgramError

MARKS = ("<!-- l2 figures: written by `make bench-l2`, don't edit -->", "<!-- end of l2 figures -->")
SPEAKERS: Mapping[str, Callable[[Path], Speaker]] = {
    "closeby": partial(Closeby, profile="default"),
    "closeby-fast": partial(Closeby, profile="fast"),
    "keepalived-0.1": partial(Keepalived, advert_s=0.1),
    "keepalived-1": partial(Keepalived, advert_s=1.0),
}
_WIDTH = 160  # of the table in a log


class Plan(NamedTuple):
    """What is run."""

    speakers: Sequence[Speaker]
    scenarios: Sequence[Scenario]
    families: Sequence[str]
    nodes: int
    runs: int

    @property
    def size(self) -> int:
        """Results that it makes."""
        return len(self.speakers) * len(self.scenarios) * len(self.families)


@click.command(context_settings={"max_content_width": 120})
@click.option("--runs", default=20, show_default=True, type=click.IntRange(1), help="Of each scenario.")
@click.option("--speaker", "speakers", multiple=True, type=click.Choice(list(SPEAKERS)), help="Default: all.")
@click.option("--scenario", "scenarios", multiple=True, type=click.Choice(list(BY_FLAG)), help="Default: all.")
@click.option(
    "--family", "families", multiple=True, type=click.Choice([f.value for f in Family]), help="Default: both."
)
@click.option("--nodes", default="3", show_default=True, type=click.Choice(["3", "5"]), help="On the LAN.")
@click.option(
    "--read",
    "read_files",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Run nothing: join what --json wrote in earlier runs. Given several times, runs of one scenario are added.",
)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="JSON lines go here, not to stdout.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the table and the machine to this file.")
@click.option("--folder", type=click.Path(path_type=Path), help="Work here, and leave the logs of all daemons.")
def bench(**flags: Any) -> None:  # noqa: ANN401  # click passes flags by keyword, each typed by its option
    """Break a LAN of network namespaces in every way, and tell what its clients notice.

    A run takes about 15 s, so all of it hours: --speaker, --scenario, --family and --runs make it shorter, and parts of
    it that ran apart, or side by side, are joined by --read. A speaker that can't run here is left out, with a
    sentence. Needs root; leaves nothing behind, also after Ctrl-C.
    """
    console = open_console()
    if not console.is_terminal:
        console.width = _WIDTH
    if flags["read_files"]:
        joined = join_results(chain.from_iterable(map(_read, flags["read_files"])))
        if len({result.nodes for result in joined}) != 1:
            raise click.BadParameter(
                "one table is of LANs of one size, and of one result at least", param_hint="--read"
            )
        console.print(_table(joined))
        _write(flags["markdown"], joined)
        return
    results: list[Result] = []
    with _folder(flags["folder"]) as folder, _lines(flags["json_file"]) as lines:
        plan = _plan(flags, folder, console)
        try:
            for result in _run(plan, console):
                results.append(result)
                lines.write(render_json(result) + "\n")
                lines.flush()
        except (SettleError, NetnsError, ProgramError) as error:
            console.print(f"bench-l2: {error}", style="red", markup=False, soft_wrap=True)
        finally:
            if results:
                console.print(_table(results))
    if len(results) < plan.size:
        sys.exit(1)
    _write(flags["markdown"], results)


def _plan(flags: Mapping[str, Any], folder: Path, console: Console) -> Plan:
    """The run that the flags ask for; exit 1 if no speaker can run here."""
    able: list[Speaker] = []
    for name in flags["speakers"] or SPEAKERS:
        speaker = SPEAKERS[name](folder / name)
        missing = speaker.missing()
        if missing is None:
            able.append(speaker)
        else:
            console.print(f"{speaker.name} is left out: {missing}", style="yellow", markup=False, soft_wrap=True)
    if not able:
        console.print("bench-l2: no speaker can run here", style="red")
        sys.exit(1)
    scenarios = [BY_FLAG[name] for name in flags["scenarios"] or BY_FLAG]
    return Plan(able, scenarios, flags["families"] or tuple(Family), int(flags["nodes"]), flags["runs"])


def _run(plan: Plan, console: Console) -> Iterator[Result]:
    """Every scenario with every speaker, on one LAN; a line each."""
    with Lan("lan", plan.nodes) as lan:
        for scenario, family, speaker in product(plan.scenarios, plan.families, plan.speakers):
            what = f"{scenario.name}, {family}, {speaker.name}"
            began = time.monotonic()
            runs: list[Mapping[Figure, float]] = []
            with console.status(what) as status:
                for number in range(1, plan.runs + 1):
                    status.update(f"{what}: run {number} of {plan.runs}")
                    runs.append(run_once(lan, speaker, scenario, family))
            console.print(f"{what}: {plan.runs} runs, {time.monotonic() - began:.0f} s", markup=False, highlight=False)
            yield Result(scenario.name, speaker.name, family, plan.nodes, tuple(runs))


def _read(path: Path) -> tuple[Result, ...]:
    """Exit 2 where the file isn't what --json wrote."""
    try:
        return parse_results(path.read_text())
    except (RowsError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{path}: {error}", param_hint="--read") from error


def _write(markdown: Path | None, results: Sequence[Result]) -> None:
    """The table and the machine, where a file was given for them."""
    if markdown is None:
        return
    machine = f"{describe_machine(read_version())}; {results[0].nodes} nodes on the LAN"
    write_between(markdown, MARKS, f"{machine}\n\n{render_markdown(render_table(results))}")


def _table(results: Sequence[Result]) -> Table:
    head, *rows = render_table(results)
    table = Table(*head, title="Median / p95 / longest")
    for row in rows:
        table.add_row(*row)
    return table


@contextmanager
def _lines(json_file: Path | None) -> Iterator[TextIO]:
    if json_file is None:
        yield sys.stdout
        return
    with json_file.open("w") as file:
        yield file


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="closeby-lan-") as made:
        yield Path(made)


if __name__ == "__main__":
    bench()
