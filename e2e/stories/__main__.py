"""`python -m e2e.stories STORY`: a real cluster's life, told with counted traffic."""

import importlib
import importlib.util
import os
import sys
from pathlib import Path

import click

_PAGE = Path(__file__).parents[2] / "docs" / "stories.md"
STORIES = {  # each is a module beside this one, with a command `main`
    "replace": "closeby takes over from kube-proxy by docs/migration.md, and back.",
    "update": "A rolling update of the proxy itself.",
    "restart": "A node restarts.",
    "lost": "A node is lost for good.",
    "outage": "The API server is away for two minutes, and backends restart meanwhile.",
    "life": "These five on one cluster for each proxy, in less time.",
    "dns": "DNS asked of the node's own CoreDNS.",
    "zones": "Traffic that stays in its zone, under scaling and rolling updates.",
}
_IN_LIFE = ("replace", "update", "restart", "lost", "outage")


class Stories(click.Group):
    """Loads only the story that is asked for."""

    def list_commands(self, _context: click.Context) -> list[str]:
        """Every story that is there, and "all"."""
        return [*(name for name in STORIES if importlib.util.find_spec(_module(name))), "all"]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The story's command; None if there is no such story."""
        if name not in self.list_commands(context):
            return None
        if name == "all":
            return run_all
        command = importlib.import_module(_module(name)).main
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Without loading one."""
        rows = [(name, STORIES.get(name, "Every story, one after the other.")) for name in self.list_commands(context)]
        with formatter.section("Stories"):
            formatter.write_dl(rows)


@click.group(cls=Stories)
def main() -> None:
    """A real cluster's life, on clusters of kind that are made and removed here.

    Each story takes minutes; `python -m e2e.stories STORY --help` says what it does. They need root.
    """
    if os.geteuid() != 0 and "--help" not in sys.argv:
        click.echo("stories: network namespaces and dockerd need root; run it as root", err=True)
        sys.exit(1)


@click.command("all")
@click.option("--page", type=click.Path(path_type=Path), default=_PAGE, show_default=True, help="Gets the tables.")
@click.pass_context
def run_all(context: click.Context, page: Path) -> None:
    """Every story, one after the other, and its figures in the page. One that fails doesn't keep the others away."""
    failed = []
    group = Stories()
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command is run_all or name in _IN_LIFE:
            continue
        with_page = any(parameter.name == "page" for parameter in command.params)
        try:
            command.main(["--page", str(page)] if with_page else [], prog_name=name, standalone_mode=False)
        except SystemExit as ended:
            if ended.code:
                failed.append(name)
    if failed:
        click.echo(f"stories: failed: {', '.join(failed)}", err=True)
        sys.exit(1)


def _module(name: str) -> str:
    return f"e2e.stories.{name}"


if __name__ == "__main__":
    main()
