"""How the demo looks. Prints nothing itself."""

from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from e2e.demo.l2.judge import Asked, Moved
from e2e.demo.tables import open_table, show_complaints, show_kept


def show_asked(rows: Sequence[tuple[str, str, str, Asked, tuple[str, ...]]]) -> Group:
    """Each Service by name, what it shows, its address, what the client saw, and complaints."""
    table = _table(
        ("Service", 7), ("shows", 2), ("address", 15), ("announced by", 14), ("answers, by node", 3), ("same node", 9)
    )
    complaints = []
    for name, shows, vip, asked, wrong in rows:
        owners = ", ".join(sorted(asked.owners)) or "nobody"
        table.add_row(name, escape(shows), vip, owners, _counts(asked.answers), _percent(asked.near), show_kept(wrong))
        complaints += show_complaints(name, wrong)
    return Group(table, *complaints, "")


def show_moved(rows: Sequence[tuple[str, Moved]]) -> Group:
    """Each act by its title, and what the client saw of it."""
    table = _table(("what happens", 4), ("before", 3), ("after", 3), ("same node", 13), ("dark", 8), ("lost", 4))
    complaints = []
    for title, moved in rows:
        before, after = moved.near
        table.add_row(
            title,
            f"{moved.owner[0]}: {_counts(moved.before)}",
            f"{moved.owner[1]}: {_counts(moved.after)}",
            f"{_percent(before)}, {_percent(after)}",
            f"{moved.dark_s * 1000:.0f} ms",
            str(moved.lost),
            show_kept(moved.complaints),
        )
        complaints += show_complaints(title, moved.complaints)
    return Group(table, *complaints, "")


def show_result(promises: int, broken: int, attempts: int, took_s: float) -> Panel:
    """The last word."""
    return Panel(
        f"{attempts} connections and exchanges, {promises} promises, [bold]{broken} broken[/], in {took_s:.0f} s.",
        title="Every promise was kept" if not broken else "Promises were broken",
        style="red" if broken else "green",
    )


def _table(*columns: tuple[str, int]) -> Table:
    table = open_table(headed=True)
    for heading, size in columns:
        narrow = len(heading) <= size  # else it takes such a part of what is left
        table.add_column(heading, width=size if narrow else None, ratio=None if narrow else size)
    table.add_column("kept", width=4)
    return table


def _counts(answers: Mapping[str, int]) -> str:
    return ", ".join(f"{node} [dim]x[/]{n}" for node, n in sorted(answers.items())) or "none"


def _percent(part: float) -> str:
    return f"{part:.0%}"
