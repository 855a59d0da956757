"""A story's part of a page: what `python -m e2e.stories` writes between the story's two marks. No I/O."""

from collections.abc import Iterable, Sequence
from datetime import date

PAGE = "docs/stories.md"
MACHINE = "Kubernetes {version}, {cores} shared cores"


def mark(story: str, path: str = PAGE) -> tuple[str, str]:
    """The lines around a story's figures."""
    return (
        f"<!-- {story}: written by `python -m e2e.stories {story} --page {path}`, don't edit -->",
        f"<!-- end of {story} -->",
    )


def put_figures(page: str, story: str, figures: str, path: str = PAGE) -> str:
    """The page with the figures between the story's marks; all else stays. ValueError without marks."""
    begin, end = mark(story, path)
    before, found, rest = page.partition(begin)
    _, also_found, after = rest.partition(end)
    if not found or not also_found:
        raise ValueError(f"the page has no place for the story {story}: {begin} and {end}")
    return f"{before}{begin}\n\n{figures.strip()}\n\n{end}{after}"


def render_run(day: date, version: str, cores: int) -> str:
    """When and on what a run was made, as one line."""
    return f"{day:%Y-%m-%d}; {MACHINE.format(version=version, cores=cores)}."


def render_rows(head: Sequence[str], rows: Iterable[Sequence[object]], words: int = 1) -> str:
    """A Markdown table: the first columns are words, the others figures; thousands get commas."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * words}{'---:|' * (len(head) - words)}"]
    lines += [f"| {' | '.join(_cell(value) for value in row)} |" for row in rows]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")
