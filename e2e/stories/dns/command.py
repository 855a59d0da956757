"""The story's command: clusters, their stages, and docs/dns.md."""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
from rich.console import Console

from deploy.image.build import version as closeby_version
from e2e.binaries.build import version_of
from e2e.console import open_console
from e2e.kind.cluster import Cluster
from e2e.kind.config import ZONE_LABEL, Proxy
from e2e.kind.errors import plain_errors
from e2e.kind.install import build_image
from e2e.kind.life import Ask, bring_down, bring_up, find_cluster
from e2e.kind.steps import steps_on
from e2e.stories.clients import PodClients
from e2e.stories.dns.coredns import NodeDns
from e2e.stories.dns.rows import Row, Run, render_figures, render_row
from e2e.stories.dns.stages import STAGES, Pace, Scene, Stage
from e2e.stories.dns.telling import find_broken, tell
from e2e.stories.page import put_figures, render_run

CLIENT_IMAGE = f"closeby:{closeby_version()}"
_PAGE = "docs/dns.md"
_RESULTS = Path(".cache") / "dns"
_WORKERS = 3
_FOLLOWED_S = 10.0  # until controller and proxies have followed a change of the Service
_DISTRIBUTIONS = ("PreferClose", "PreferSameNode")
_PROXIES = (Proxy.CLOSEBY, Proxy.KUBE_PROXY)


@click.command()
@click.option("--proxy", "proxies", multiple=True, type=click.Choice([str(proxy) for proxy in _PROXIES]))
@click.option("--distribution", "distributions", multiple=True, type=click.Choice(_DISTRIBUTIONS))
@click.option("--stage", "stages", multiple=True, type=click.Choice([stage.name for stage in STAGES]))
@click.option("--name", default="dns", show_default=True, help="Of the clusters, one after the other.")
@click.option("--on", "running", help="A cluster of `python -m e2e.kind` that runs, with that proxy; it stays.")
@click.option("--keep", is_flag=True, help="Leave the last cluster up.")
@click.option("--page", "target", type=click.Path(path_type=Path), default=_PAGE, show_default=True)
def main(name: str, running: str | None, target: Path, *, keep: bool, **chosen: tuple[str, ...]) -> None:
    """DNS asked of the node's own CoreDNS.

    On a cluster of kind with three workers, CoreDNS runs as a DaemonSet behind the Service kube-dns with each
    trafficDistribution, under each proxy (by default both). A pod on each worker looks names up, 100 times a second
    by UDP and TCP over IPv4 and IPv6, while nodes are drained, CoreDNS is updated, deleted, made unready and killed.
    It takes some ten minutes a cluster. Figures of each run are kept in .cache/dns, and the page gets all of them,
    but for runs of chosen stages. The exit code is 1 if closeby lost a look-up that a proxy can keep.
    """
    proxies = [Proxy(proxy) for proxy in chosen["proxies"] or _PROXIES]
    if running and len(proxies) != 1:
        raise click.UsageError("--on takes one --proxy: the one that runs there")
    console, broken = open_console(), []
    stages = [stage for stage in STAGES if stage.name in (chosen["stages"] or [stage.name])]
    with plain_errors("dns", console):
        for proxy in proxies:
            opened = _running(running, console) if running else _made(name, proxy, console, keep=keep)
            with opened as cluster:
                for distribution, rows in _run(cluster, chosen["distributions"] or _DISTRIBUTIONS, stages, console):
                    if proxy is Proxy.CLOSEBY:
                        broken += [f"{distribution}: {title}" for title in find_broken(stages, rows)]
                    if not chosen["stages"]:
                        _keep_run(Run(str(proxy), distribution, _machine(), rows))
    if not chosen["stages"]:
        target.write_text(put_figures(target.read_text(), "dns", render_figures(_load_runs()), _PAGE))
        console.print(f"written: {target}", soft_wrap=True)
    if broken:
        console.print(f"closeby lost look-ups that it need not lose: {'; '.join(broken)}", soft_wrap=True)
        sys.exit(1)


def _run(
    cluster: Cluster, distributions: Iterable[str], stages: Sequence[Stage], console: Console
) -> Iterator[tuple[str, list[Row]]]:
    """Each distribution with its rows."""
    steps = steps_on(console)
    workers = label_zones(cluster)
    with NodeDns(cluster) as dns, PodClients(cluster, workers, image=CLIENT_IMAGE) as clients:
        for distribution in distributions:
            with steps(f"trafficDistribution: {distribution}"):
                dns.distribute(distribution)
                time.sleep(_FOLLOWED_S)
            rows = []
            for row in tell(Scene(cluster, dns, workers[0], Pace()), stages, clients, steps):
                rows.append(row)
                console.print(f"  {render_row(row)}", markup=False, highlight=False, soft_wrap=True)
            yield distribution, rows


@contextmanager
def _made(name: str, proxy: Proxy, console: Console, *, keep: bool) -> Iterator[Cluster]:
    """A new cluster, removed at the end unless it is to be kept."""
    archives = () if proxy is Proxy.CLOSEBY else (build_image(),)  # closeby brings what the clients run
    try:
        yield bring_up(Ask(name, _WORKERS, proxy, archives=archives), console)
    finally:
        if not keep:
            bring_down(name, console)


@contextmanager
def _running(name: str, console: Console) -> Iterator[Cluster]:
    """The cluster that runs, with what the clients run."""
    cluster = find_cluster(name, console)
    cluster.load(build_image())
    yield cluster


def label_zones(cluster: Cluster) -> list[str]:
    """The workers' names. Two zones of two nodes each: kube-proxy's PreferClose has a choice in both."""
    nodes = [node.name for node in cluster.nodes()]
    half = len(nodes) // 2
    for zone, members in (("north", nodes[:half]), ("south", nodes[half:])):
        cluster.kubectl("label", "--overwrite", "nodes", *members, f"{ZONE_LABEL}={zone}")
    return [node for node in nodes if node != cluster.control_plane]


def _machine() -> str:
    run = render_run(datetime.now(UTC).date(), version_of("k8s.io/kubernetes"), os.cpu_count() or 1)
    return f"{run.removesuffix('.')}, CoreDNS {version_of('github.com/coredns/coredns')}"


def _keep_run(run: Run) -> None:
    _RESULTS.mkdir(parents=True, exist_ok=True)
    (_RESULTS / f"{run.proxy}-{run.distribution}.json").write_bytes(msgspec.json.encode(run))


def _load_runs() -> Sequence[Run]:
    return [msgspec.json.decode(path.read_bytes(), type=Run) for path in sorted(_RESULTS.glob("*.json"))]
