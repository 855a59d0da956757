"""`closeby plan`: what a node would program."""

from typing import Any

import click
import msgspec
from rich.console import Console
from rich.markup import escape

from proxy.cli.kube_proxy import settings_options
from proxy.cli.loading import load_options, load_state
from proxy.cli.show import new_table, open_console, show_tier
from proxy.report import FrontendReport, PlanReport, ServicePortReport, report_plan


@click.command()
@load_options
@click.option("--node", default="", metavar="NAME", help="The node to plan for; this host's own name by default.")
@settings_options
@click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="How to show it."
)
def plan(output: str, **flags: Any) -> None:
    """Show what a node would program, for any node, without touching anything.

    \b
    Examples:
      closeby plan --node node-1 --manifests ./manifests
      closeby plan --node node-1 --kubeconfig ~/.kube/config -o json
      closeby plan --node node-2 --dump closeby-dump.json
    """  # noqa: D301 (click reads the backslash)
    loaded, settings = load_state(flags)
    report = report_plan(loaded.snapshot, settings)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(report), indent=2))
    else:
        show_plan(open_console(), report)


def show_plan(console: Console, report: PlanReport) -> None:
    """The plan as a table, and what was skipped as another."""
    title = f"Node {report.node}, zone {report.zone or 'unknown'}"
    table = new_table(title, "SERVICE", "FRONTEND", "FROM", "GOES TO", "TIER", "REASON", "SOURCE")
    for service in report.services:
        for index, frontend in enumerate(service.frontends):
            name = f"{service.service}:{service.port}" if index == 0 else ""
            table.add_row(name, *_frontend_cells(service, frontend))
    console.print(table)
    if report.skipped:
        skipped = new_table("Not used", "OBJECT", "REASON", "DETAIL")
        for part in report.skipped:
            skipped.add_row(escape(part.object), part.reason, escape(part.detail))
        console.print(skipped)


def _frontend_cells(service: ServicePortReport, frontend: FrontendReport) -> tuple[str, ...]:
    host = f"[{frontend.ip}]" if frontend.ip and ":" in frontend.ip else frontend.ip or "node"
    where = escape(f"{frontend.kind} {host}:{frontend.port}/{service.protocol}")
    goes_to = escape("\n".join(frontend.endpoints)) or f"[red]{frontend.verdict}[/]"
    sources = "\n".join((frontend.client, *(f"in {cidr}" for cidr in frontend.source_ranges)))
    return where, sources, goes_to, show_tier(frontend.tier), frontend.reason, frontend.source
