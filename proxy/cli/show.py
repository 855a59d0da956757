"""How results are shown: one console and one look of tables for all commands."""

import sys

from rich import box
from rich.console import Console
from rich.table import Table

TIER_STYLES = {
    "same-node": "green",
    "local-policy": "green",
    "same-zone": "cyan",
    "cluster": "yellow",
    "draining": "magenta",
    "none": "red",
}
_FILE_WIDTH = 180  # columns, where the output isn't a terminal: whoever reads it can scroll


def open_console(*, markup: bool = True) -> Console:
    """Standard output; as wide as the terminal, or wide enough for most rows where it is none.

    No emoji: Rich 15 would read a part of fd00:100::1, or of a MAC such as de:ab:38:00:00:01, as the name of one.
    """
    return Console(width=None if sys.stdout.isatty() else _FILE_WIDTH, highlight=False, markup=markup, emoji=False)


def new_table(title: str, *columns: str) -> Table:
    """A table without vertical lines, whose addresses are folded only where they must be."""
    table = Table(*columns, title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    return table


def show_tier(tier: str) -> str:
    """The tier in its colour, as markup."""
    return f"[{TIER_STYLES.get(tier, 'white')}]{tier}[/]"
