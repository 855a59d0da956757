"""docs/configuration.md, made from the tables. `python -m proxy.kubeproxy.page > docs/configuration.md`."""

from collections.abc import Iterator

import click

from proxy.kubeproxy.fields import FIELDS, Use
from proxy.kubeproxy.text import AFTER, BEFORE


def render_page() -> str:
    """The whole page."""
    return "\n".join((BEFORE, *_rows(), AFTER)) + "\n"


def _rows() -> Iterator[str]:
    yield "| field | flag | default | |"
    yield "|---|---|---|---|"
    for field in FIELDS:
        says = field.says if field.use is Use.USED else f"*ignored*: {field.says}"
        yield f"| `{field.path}` | {_code(field.flag)} | {_code(field.default)} | {says} |"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    click.echo(render_page(), nl=False)
