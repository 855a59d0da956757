"""The commands of stories that are told with each proxy on a cluster of its own, and what they leave."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

import click
import msgspec
from rich.console import Console

from e2e.binaries.build import version_of
from e2e.console import open_console
from e2e.kind.config import Proxy
from e2e.kind.daemon import folder
from e2e.kind.docker import CommandError
from e2e.kind.errors import plain_errors
from e2e.kind.life import keep_logs
from e2e.stories.noticed import Told, render_told
from e2e.stories.page import put_figures, render_run
from e2e.stories.shop import Shop, open_shop, open_shop_on
from e2e.world.processes import ProgramError

_RESULTS = Path(".cache") / "stories"


class Story(NamedTuple):
    """What is told: each event that `tell` yields is a row for each group of targets."""

    name: str
    help: str
    tell: Callable[[Shop], Iterable[Told]]
    proxies: tuple[Proxy, ...] = (Proxy.KUBE_PROXY, Proxy.CLOSEBY)  # in this order; also that of the page


class Result(NamedTuple):
    """Of a story with the proxy that its cluster began with."""

    day: date
    told: tuple[Told, ...]


def make_command(story: Story) -> click.Command:
    """`python -m e2e.stories NAME`."""
    return make_shared_command(story.name, story.help, [story])


def make_shared_command(name: str, explained: str, stories: Sequence[Story]) -> click.Command:
    """A command that tells the stories one after the other on one cluster for each proxy."""
    proxies = list(dict.fromkeys(proxy.value for story in stories for proxy in story.proxies))

    @click.command(name, help=explained)
    @click.option("--cluster", default=f"story-{name}", show_default=True, help="Name of the clusters.")
    @click.option(
        "--proxy",
        "chosen",
        type=click.Choice(proxies),
        multiple=True,
        default=proxies,
        show_default=True,
        help="With which to tell it; of the other one the page keeps the last run.",
    )
    @click.option("--on", "running", help="A cluster of `python -m e2e.kind` that runs, with that proxy; it stays.")
    @click.option("--page", type=click.Path(path_type=Path, exists=True), help="Write the figures into this page.")
    def main(cluster: str, chosen: tuple[str, ...], running: str | None, page: Path | None) -> None:
        if running and len(chosen) != 1:
            raise click.UsageError("--on takes one --proxy: the one that runs there")
        console = open_console()
        complaints: list[str] = []
        with plain_errors("stories", console):
            for proxy in map(Proxy, chosen):
                opened = open_shop_on(running, proxy, console) if running else open_shop(cluster, proxy, console)
                with opened as shop:
                    for story in (story for story in stories if proxy in story.proxies):
                        complaints += _try(story, shop, page, console)
        for complaint in complaints:
            click.echo(f"stories: {complaint}", err=True)
        if complaints:
            sys.exit(1)

    return main


def _try(story: Story, shop: Shop, page: Path | None, console: Console) -> list[str]:
    """As `_tell`; a story that can't be told leaves the cluster's logs, and the next one its turn."""
    try:
        return _tell(story, shop, page)
    except (CommandError, ProgramError, TimeoutError) as error:
        keep_logs(shop.cluster, folder() / "logs" / f"{shop.cluster.name}-{story.name}", console)
        return [f"{shop.proxy}, {story.name}: {error}"]


def _tell(story: Story, shop: Shop, page: Path | None) -> list[str]:
    """What closeby failed in where a proxy need not; the result is kept, printed, and written into the page."""
    result = Result(datetime.now(UTC).date(), tuple(story.tell(shop)))
    path = _RESULTS / story.name / f"{shop.proxy}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(result))
    click.echo(f"{render_told(result.told)}\n")
    if page:
        kept = [_RESULTS / story.name / f"{proxy}.json" for proxy in story.proxies]
        results = [msgspec.json.decode(one.read_bytes(), type=Result) for one in kept if one.exists()]
        figures = render_results(results, version_of("k8s.io/kubernetes"), os.cpu_count() or 1)
        page.write_text(put_figures(page.read_text(), story.name, figures))
    return [complaint for one in result.told if one.proxy == Proxy.CLOSEBY for complaint in one.complaints()]


def render_results(results: Sequence[Result], version: str, cores: int) -> str:
    """A story's part of the page: when and on what, and the tables, each event with each proxy side by side. Pure."""
    told = [one for result in results for one in result.told]
    events = list(dict.fromkeys(one.event for one in told))
    beside = [one for event in events for one in told if one.event == event]
    return f"{render_run(max(result.day for result in results), version, cores)}\n\n{render_told(beside)}"
