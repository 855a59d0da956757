"""`python -m e2e.stories zones`: how much traffic stays in its zone while a workload changes, beside kube-proxy."""

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import click
import msgspec
from rich.console import Console

from deploy.image.build import version
from e2e.binaries.build import version_of
from e2e.console import open_console
from e2e.kind.cluster import Cluster
from e2e.kind.config import Proxy
from e2e.kind.daemon import folder
from e2e.kind.docker import CommandError
from e2e.kind.errors import plain_errors
from e2e.kind.install import build_image
from e2e.kind.life import Ask, bring_down, bring_up
from e2e.kind.steps import Steps, steps_on
from e2e.stories.clients import PodClients
from e2e.stories.page import put_figures, render_run
from e2e.stories.zone_picture import draw_shares
from e2e.stories.zone_shares import Told, Visit, bin_visits, find_broken, render_table, see_visits, sum_stage
from e2e.stories.zone_stages import AGENT, WEB, Stages, started
from e2e.stories.zone_watch import EndpointWatch
from e2e.world.clients import Outcome, Record, Target, Traffic

_ROOT = Path(__file__).parents[2]
_EXAMPLE = _ROOT / "docs" / "zones.yaml"
_PAGE = "docs/zones.md"
_WORKERS = 6  # two in each of three zones
_EVERY_S = 0.1  # each client, each of its targets
_PATIENCE_S = 5.0  # what takes longer has failed; less would count a busy machine's own delays
_PROXIES = (Proxy.KUBE_PROXY, Proxy.CLOSEBY)
_TITLES = {WEB: "Service of a Deployment, PreferClose", AGENT: "Service of a DaemonSet, PreferClose"}


class Seen(NamedTuple):
    """What one run has to be judged by."""

    stages: Stages
    records: Mapping[str, Sequence[Record]]  # by client
    nodes: Mapping[str, str]  # of the clients
    watch: EndpointWatch


@click.command()
@click.option("--proxy", "proxies", type=click.Choice([p.value for p in _PROXIES]), multiple=True, help="One only.")
@click.option("--name", default="zones", show_default=True, help="Of the clusters that are made and removed.")
@click.option("--steady", "steady_s", default=8.0, show_default=True, help="Seconds of each stage once it settled.")
@click.option("--records", type=click.Path(path_type=Path), default="build/zones", show_default=True, help="A folder.")
@click.option("--page", "target", type=click.Path(path_type=Path), default=_PAGE, show_default=True)
@click.option("--draw-only", is_flag=True, help="Make the page and its picture of what is in the folder of records.")
def main(proxies: tuple[str, ...], name: str, steady_s: float, *, draw_only: bool, **paths: Path) -> None:
    """Traffic that stays in its zone, with kube-proxy and then with closeby.

    Makes a cluster of six workers in three zones for each proxy, asks a Deployment and a DaemonSet behind Services with
    trafficDistribution PreferClose from every node, scales and updates them, and empties a zone. Writes the shares of
    what stayed on the node and in the zone into the page, and beside it a picture. Some ten minutes a proxy.

    Ends with 1 if with closeby a connection failed, or left a zone that had an endpoint, when nothing was changing.
    """
    console = open_console()
    records, page = paths["records"], paths["target"]
    if os.geteuid() != 0 and not draw_only:
        click.echo("zones: network namespaces and dockerd need root; run it as root", err=True)
        sys.exit(1)
    records.mkdir(parents=True, exist_ok=True)
    _check_page(page)
    for proxy in () if draw_only else proxies or tuple(p.value for p in _PROXIES):
        with plain_errors("zones", console):
            told = tell(Proxy(proxy), name, steady_s, console)
        (records / f"{proxy}.json").write_bytes(msgspec.json.encode(told))
    files = [records / f"{proxy.value}.json" for proxy in _PROXIES]
    stories = [msgspec.json.decode(file.read_bytes(), type=Told) for file in files if file.exists()]
    if not stories:
        click.echo(f"zones: {records} has no record of a run", err=True)
        sys.exit(1)
    write_page(page, stories)
    console.print(f"{page} and {page.with_suffix('.svg')} are written", soft_wrap=True)
    broken = [f"{told.proxy}: {promise}" for told in stories if told.proxy == Proxy.CLOSEBY for promise in told.broken]
    for line in broken:
        console.print(f"zones: {line}", markup=False, highlight=False, soft_wrap=True)
    sys.exit(1 if broken else 0)


def tell(proxy: Proxy, name: str, steady_s: float, console: Console) -> Told:
    """The story with one proxy, on a cluster of its own that is removed again."""
    steps = steps_on(console)
    try:
        cluster = bring_up(Ask(name, _WORKERS, proxy), console)
        if proxy is not Proxy.CLOSEBY:  # the servers and clients run under its image
            with steps("closeby's image, into every node"):
                cluster.load(build_image())
        seen = _run(cluster, steps, steady_s)
    finally:
        bring_down(name, console)
    return _judge(proxy, seen)


def _run(cluster: Cluster, steps: Steps, steady_s: float) -> Seen:
    """Everything that was seen. CommandError, TimeoutError: the cluster's logs are in a folder then."""
    try:
        return _walk(cluster, steps, steady_s)
    except (CommandError, TimeoutError):
        with steps(f"logs of all components, to {folder() / 'logs' / cluster.name}"):
            cluster.write_logs(folder() / "logs" / cluster.name)
        raise


def _walk(cluster: Cluster, steps: Steps, steady_s: float) -> Seen:
    image = f"closeby:{version()}"
    workers = [node.name for node in cluster.nodes() if node.zone]
    with (
        EndpointWatch(cluster, (WEB, AGENT)) as watch,
        started(cluster, _EXAMPLE.read_text(), image) as addresses,
        PodClients(cluster, workers, image=image) as clients,
    ):
        targets = [
            Target(protocol, addresses[service], 80, timeout_s=_PATIENCE_S)
            for service in _TITLES
            for protocol in ("tcp", "udp")
        ]
        with Traffic(clients, dict.fromkeys(clients.names, targets), _EVERY_S) as traffic:
            stages = Stages(cluster, watch, steps, steady_s)
            stages.run()
            records = traffic.stop()
        return Seen(stages, records, {client: clients.node_of(client) for client in clients.names}, watch)


def _judge(proxy: Proxy, seen: Seen) -> Told:
    done, began = seen.stages.done, seen.stages.began
    visits = {service: _visits(seen, index) for index, service in enumerate(_TITLES)}
    seconds = int(done[-1].ended)
    return Told(
        proxy=proxy.value,
        run=render_run(datetime.now(UTC).date(), version_of("k8s.io/kubernetes"), os.cpu_count() or 1),
        stages=done,
        seconds={service: bin_visits(visits[service], began, seconds) for service in _TITLES},
        rows={service: [sum_stage(stage, visits[service], began) for stage in done] for service in _TITLES},
        broken=[
            f"{service}: {words}"
            for service in _TITLES
            for stage in done
            for words in find_broken(
                stage, visits[service], began, same_node=service == AGENT and proxy is Proxy.CLOSEBY
            )
        ],
        failures=[
            f"{record.began - began:.2f} s: {client} {record.outcome} by target {record.target}"
            for client, records in seen.records.items()
            for record in records
            if record.outcome is not Outcome.ANSWERED
        ],
    )


def _visits(seen: Seen, index: int) -> list[Visit]:
    """All clients' visits to one of the Services, each of which is two targets."""
    service = list(_TITLES)[index]
    return [
        visit
        for client, records in seen.records.items()
        for visit in see_visits(
            [record for record in records if record.target // 2 == index],
            seen.nodes[client],
            seen.stages.zones,
            seen.watch.reaches(service),
        )
    ]


def _check_page(page: Path) -> None:
    """A page without a place for the figures shows before the long work, not after it: BadParameter."""
    try:
        put_figures(page.read_text(), "zones", "", _PAGE)
    except (OSError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--page") from error


def write_page(page: Path, stories: Sequence[Told]) -> None:
    """Put the tables between the page's marks, and the picture beside the page."""
    parts = [told.proxy + ": " + told.run for told in stories]
    parts += [f"{title}:\n\n{render_table(service, stories)}" for service, title in _TITLES.items()]
    page.write_text(put_figures(page.read_text(), "zones", "\n\n".join(parts), _PAGE))
    draw_shares(page.with_suffix(".svg"), _TITLES, stories)


if __name__ == "__main__":
    main()
