"""`closeby verify`: what this node's kernel holds, against what closeby would choose."""

import sys
from functools import partial
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.markup import escape

from proxy.cli.kube_proxy import settings_options
from proxy.cli.loading import check_flags, load_options, load_state
from proxy.cli.show import new_table, open_console, show_tier
from proxy.kernel.ruleset import TABLE
from proxy.verify.foreign import TABLE as KUBE_PROXY
from proxy.verify.look import Look, look_at, settle
from proxy.verify.read import find_families, finds_iptables_mode
from proxy.verify.report import FrontendCheck, SideReport, TableCheck, keep_differences

_ALL = "all"
_IPTABLES = (
    "kube-proxy's rules here are of iptables or ipvs mode, which verify can't read; closeby plan shows what closeby "
    "would do. Start closeby beside it, and verify closeby's own table before kube-proxy's rules go"
)


@click.command()
@load_options
@click.option("--node", default="", metavar="NAME", help="This node's name; this host's own name by default.")
@settings_options
@click.option(
    "--table",
    type=click.Choice([_ALL, TABLE, KUBE_PROXY]),
    default=_ALL,
    show_default=True,
    help="Whose table to look at; all: those that are here.",
)
@click.option("--all", "everything", is_flag=True, help="Show also what is as it should be.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="How to show it."
)
def verify(*, table: str, everything: bool, output: str, **flags: Any) -> None:
    """Compare what this node's kernel holds with what closeby would choose; it only reads, and sends nothing.

    Run it as root on a node: before a move, it holds kube-proxy's table (nftables mode) against what closeby would
    program; afterwards closeby's own, in every element. For each Service port and address it compares who answers, what
    is refused or dropped, source ranges and affinity. Differences that closeby means to make are told with their
    reason. What differs is looked at again for some seconds, since a proxy may just be writing it.

    Give it the settings that the proxy has (--config takes kube-proxy's own file), or what they change will differ.

    Exit codes: 0 nothing differs that isn't meant to; 1 something does, or nothing can be read; 2 a wrong flag or file.

    \b
    Examples:
      closeby verify                                              a running closeby
      closeby verify --kubeconfig /etc/kubernetes/proxy.conf --config /var/lib/kube-proxy/config.conf
      closeby verify --table kube-proxy --kubeconfig FILE --all -o json
    """  # noqa: D301 (click reads the backslash)
    check_flags(flags)
    tables = _find_tables(table)
    found = settle(partial(_look, flags, tables))
    shown = found.report if everything else keep_differences(found.report)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(shown), indent=2))
    else:
        console = open_console()
        for one in shown.tables:
            _show_table(console, one, f"node {shown.node}, zone {shown.zone or 'unknown'}")
    if not found.still:
        click.echo("closeby: the tables changed at each look; look again when the node is quieter", err=True)
    if found.report.wrong:
        sys.exit(1)


def _look(flags: dict[str, Any], tables: tuple[str, ...]) -> Look:
    loaded, settings = load_state(flags)
    return look_at(loaded.snapshot, settings, tables)


def _find_tables(wanted: str) -> tuple[str, ...]:
    """Those to look at; where there is none, the process ends with a sentence and exit code 1."""
    here = tuple(name for name in (TABLE, KUBE_PROXY) if find_families(name))
    found = here if wanted == _ALL else tuple(name for name in here if name == wanted)
    iptables_mode = wanted != TABLE and KUBE_PROXY not in here and finds_iptables_mode()
    if found:
        if iptables_mode:
            click.echo(f"closeby: {_IPTABLES}", err=True)
        return found
    names = f"{TABLE} or {KUBE_PROXY}" if wanted == _ALL else wanted
    reason = _IPTABLES if iptables_mode else "run it on the node, in the host's network namespace"
    click.echo(f"closeby: there is no nftables table {names} here: {reason}", err=True)
    sys.exit(1)


def _show_table(console: Console, check: TableCheck, where: str) -> None:
    title = f"Table {check.table}, {where}"
    if check.frontends:
        table = new_table(title, "SERVICE", "FRONTEND", "FROM", "EXPECTED", "TIER", "FOUND", "VERDICT")
        for row in check.frontends:
            table.add_row(*_cells(row))
        console.print(table)
    else:
        console.print(f"[bold]{escape(title)}[/]")
    for remark in check.remarks:
        mark = f"[yellow]as meant: {escape(remark.meant)}[/]" if remark.meant else "[red]differs[/]"
        console.print(f"{escape(remark.what)}: {mark}")
    if check.unseen:
        console.print(f"Not seen in this table: {escape('; '.join(check.unseen))}.", style="dim")
    counts = check.counts
    console.print(
        f"{counts['same']} frontends as closeby would have them, {counts['meant']} otherwise as meant, "
        f"{counts['different']} [bold]different[/]; {counts['remarks']} other differences.\n"
    )


def _cells(row: FrontendCheck) -> tuple[str, ...]:
    host = f"[{row.ip}]" if row.ip and ":" in row.ip else row.ip or "node"
    kind = f"{row.kind or ''} {host}:{row.port}/{row.protocol}".strip()
    family = f" {row.family}" if row.ip is None else ""
    name = f"{row.service}:{row.service_port}" if row.service else "[dim]none[/]"
    tier = show_tier(row.tier) if row.tier else ""
    return name, escape(kind + family), row.client, _show(row, row.expected), tier, _show(row, row.found), _judge(row)


def _show(row: FrontendCheck, side: SideReport | None) -> str:
    """What a side does; more than its endpoints only where that differs."""
    if side is None:
        return "[dim]nothing[/]"
    lines = [escape(one) for one in side.endpoints] or [f"[red]{side.verdict}[/]"]
    if "other-affinity" in row.differences:
        lines.append("no affinity" if side.affinity is None else f"affinity for {side.affinity} s")
    if "other-source-ranges" in row.differences:
        lines.append(f"open to {', '.join(side.source_ranges) or 'all'}")
    if "other-source" in row.differences:
        lines.append(f"source {side.source or 'unseen'}")
    return "\n".join(lines)


def _judge(row: FrontendCheck) -> str:
    if not row.differences:
        return "[green]same[/]"
    words = ", ".join(difference.replace("-", " ") for difference in row.differences)
    more = f": {escape(row.detail)}" if row.detail else ""
    return f"[yellow]{words}, as meant: {escape(row.meant)}[/]" if row.meant else f"[red]{words}[/]{more}"
