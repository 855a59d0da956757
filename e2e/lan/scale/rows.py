"""What was measured, as a table. No I/O."""

from collections.abc import Sequence

from e2e.lan.scale.rig import Cost

_HEAD = (
    "members",
    "addresses",
    "elected, from first to last claim",
    "CPU for it",
    "CPU afterwards, of a core",
    "wake-ups a second",
    "resident memory",
)


def render_cells(cost: Cost) -> tuple[str, ...]:
    """One row."""
    return (
        str(cost.members),
        f"{cost.vips:,}",
        f"{cost.claims_s * 1000:.0f} ms",
        f"{cost.elected_cpu_s:.2f} s",
        f"{cost.idle_cpu:.2%}",
        f"{cost.wakes:.0f}",
        f"{cost.resident_mb:.0f} MB",
    )


def render_table(costs: Sequence[Cost]) -> tuple[tuple[str, ...], ...]:
    """The head first."""
    return _HEAD, *map(render_cells, costs)


def render_markdown(costs: Sequence[Cost]) -> str:
    """Figures to the right."""
    head, *rows = render_table(costs)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, ("---:",) * len(head), *rows])
