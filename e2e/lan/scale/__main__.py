"""`python -m e2e.lan.scale`: what one announcer costs among many members, with few addresses and with thousands."""

import sys
import tempfile
from pathlib import Path

import click
import msgspec
from rich.table import Table

from e2e.bench.report import describe_machine, write_between
from e2e.console import open_console
from e2e.lan.scale.crowd import Order
from e2e.lan.scale.plan import MOST_MEMBERS, MOST_VIPS
from e2e.lan.scale.rig import Cost, measure
from e2e.lan.scale.rows import render_markdown, render_table
from e2e.world.netns import NetnsError
from e2e.world.processes import ProgramError
from proxy.l2.types import PROFILES

MARKS = (
    "<!-- l2 scale figures: written by `python -m e2e.lan.scale`, don't edit -->",
    "<!-- end of l2 scale figures -->",
)


@click.command(context_settings={"max_content_width": 120})
@click.option("--members", default=30, show_default=True, type=click.IntRange(2, MOST_MEMBERS), help="On the wire.")
@click.option(
    "--vips",
    multiple=True,
    default=(1, 100, 5000),
    show_default=True,
    type=click.IntRange(1, MOST_VIPS),
    help="Addresses; a run for each.",
)
@click.option("--settle", default=10.0, show_default=True, metavar="SECONDS", help="Between the election and the look.")
@click.option("--seconds", default=60.0, show_default=True, help="How long it is looked at while nothing happens.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the table and the machine to this file.")
def scale(members: int, vips: tuple[int, ...], settle: float, seconds: float, markdown: Path | None) -> None:
    """Measure one real `closeby announce` among members that a single program speaks for, each as a real one does.

    CPU time says more than seconds do where other programs run. A JSON line for each run goes to stdout. Needs root;
    touches no namespace but its own two, and leaves nothing behind.
    """
    console = open_console()
    costs: list[Cost] = []
    try:
        for count in vips:
            with console.status(f"{members} members, {count} addresses"), tempfile.TemporaryDirectory() as folder:
                order = Order(members, count, PROFILES["default"].interval_s)
                costs.append(measure(order, Path(folder), settle_s=settle, idle_s=seconds))
            click.echo(msgspec.json.encode(costs[-1]).decode())
    except (NetnsError, ProgramError) as error:
        console.print(f"scale: {error}", style="red", markup=False, soft_wrap=True)
        sys.exit(1)
    finally:
        if costs:
            head, *rows = render_table(costs)
            table = Table(*head)
            for row in rows:
                table.add_row(*row)
            console.print(table)
    if markdown is not None:
        machine = describe_machine("profile default")
        write_between(markdown, MARKS, f"{machine}; other programs were running\n\n{render_markdown(costs)}")


if __name__ == "__main__":
    scale()
