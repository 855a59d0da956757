"""`python -m e2e.kind up|down|status|shell|kubectl|load`: a real cluster on this machine."""

import os
import sys
from pathlib import Path

import click
from rich.table import Table

from e2e.console import open_console
from e2e.kind.config import Proxy
from e2e.kind.errors import plain_errors
from e2e.kind.life import Ask, bring_down, bring_up, find_cluster, list_running
from e2e.kind.routes import Node

_FILE = click.Path(path_type=Path, exists=True)
_NAME = click.option("--name", default="kind", show_default=True, envvar="CLUSTER", help="Of the cluster.")


@click.group()
def main() -> None:
    """A real cluster on this machine, by kind, whose Services wait for a proxy."""
    if os.geteuid() != 0:
        click.echo("kind: network namespaces and dockerd need root; run it as root", err=True)
        sys.exit(1)


@main.command()
@_NAME
@click.option("--workers", default=2, show_default=True, envvar="WORKERS", help="From six on, in three zones.")
@click.option("--proxy", type=click.Choice([p.value for p in Proxy]), default="none", show_default=True, envvar="PROXY")
@click.option("--node-image", help="Of the nodes; by default kind's published one, else one that is built here.")
@click.option("--load", "archives", type=_FILE, multiple=True, help="An image archive, for every node.")
@click.option("--apply", "manifests", type=_FILE, multiple=True, help="A manifest, or a folder with a kustomization.")
@click.option("--keep-logs", type=click.Path(path_type=Path), help="Write all logs to this folder, also on success.")
def up(name: str, proxy: str, keep_logs: Path | None, **flags: object) -> None:
    """Make a cluster, and wait until what it has of a proxy works."""
    ask = Ask(name=name, proxy=Proxy(proxy), keep_logs=keep_logs, **flags)  # type: ignore[arg-type]  # click's options are its fields
    console = open_console()
    with plain_errors("kind", console):
        cluster = bring_up(ask, console)
        console.print(_table(cluster.nodes()))
        console.print("Go on with: python -m e2e.kind kubectl get pods -A", soft_wrap=True)


@main.command()
@_NAME
@click.option("--all", "everything", is_flag=True, help="All clusters, and what a crash left.")
def down(name: str, *, everything: bool) -> None:
    """Remove a cluster; with the last one also the dockerd that `up` started."""
    console = open_console()
    with plain_errors("kind", console):
        bring_down(None if everything else name, console)


@main.command()
def status() -> None:
    """The clusters that run, and their nodes."""
    console = open_console(stderr=False)
    with plain_errors("kind", console):
        for cluster in list_running(open_console()):
            where = f"network namespace {cluster.docker.netns}" if cluster.docker.netns else "this machine's dockerd"
            console.print(f"[bold]{cluster.name}[/]  {where}; kubeconfig {cluster.kubeconfig}", soft_wrap=True)
            console.print(_table(cluster.nodes()))


@main.command(context_settings={"allow_interspersed_args": False})
@_NAME
@click.argument("node")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def shell(name: str, node: str, command: tuple[str, ...]) -> None:
    """A shell on NODE ("worker2" is short for the cluster's), or a command there."""
    with plain_errors("kind", open_console()):
        docker = find_cluster(name, open_console()).docker
    full = node if node.startswith(f"{name}-") else f"{name}-{node}"
    terminal = ["--tty"] if sys.stdin.isatty() else []
    argv = ["docker", "exec", "--interactive", *terminal, full, *(command or ("bash",))]
    os.execvpe("docker", argv, docker.environment())  # noqa: S606  # this process becomes the shell


@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@_NAME
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(name: str, arguments: tuple[str, ...]) -> None:
    """Run kubectl on the cluster, as its administrator, from where its addresses are reached."""
    with plain_errors("kind", open_console()):
        argv = find_cluster(name, open_console()).kubectl_command(*arguments)
    os.execvp(argv[0], argv)  # noqa: S606  # this process becomes kubectl


@main.command()
@_NAME
@click.argument("archive", type=click.Path(path_type=Path, exists=True))
def load(name: str, archive: Path) -> None:
    """Import an image archive, as `docker save` writes it, into every node."""
    with plain_errors("kind", open_console()):
        find_cluster(name, open_console()).load(archive)


def _table(nodes: list[Node]) -> Table:
    table = Table("node", "zone", "addresses", "pods", "Ready", box=None, pad_edge=False)
    for node in nodes:
        ready = "[green]yes[/]" if node.ready else "[red]no[/]"
        table.add_row(node.name, node.zone, " ".join(node.addresses), " ".join(node.pod_cidrs), ready)
    return table


if __name__ == "__main__":
    main()
