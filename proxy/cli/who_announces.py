"""`closeby who-announces`: who owns load-balancer addresses, who comes next, and why others don't."""

from pathlib import Path

import click
import msgspec

from endpointslice.addresses import parse_ip
from endpointslice.types import NodeName
from proxy.announcer.control import Request, ask
from proxy.announcer.status import CandidateStatus, Status, VipStatus
from proxy.cli.announcer_options import control_option
from proxy.cli.show import new_table, open_console
from proxy.config import ConfigError


@click.command("who-announces")
@click.argument("vip", required=False)
@click.option("--without", default="", metavar="NODE", help="As it would go on if this node were lost.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@control_option
def who_announces(vip: str | None, without: str, output: str, announcer_control: Path) -> None:
    """Tell who answers for load-balancer addresses, as this node's announcer knows it: owner, heirs, candidates.

    Each candidate has a stable reason code: `eligible`, or why the node may not own the address now.

    \b
    Examples:
      closeby who-announces
      closeby who-announces 192.0.2.10
      closeby who-announces --without node-1        who would be next
    """  # noqa: D301 (click reads the backslash)
    if vip is not None and parse_ip(vip) is None:
        raise ConfigError(f'VIP: "{vip}" is not an address; write it as 192.0.2.10 or 2001:db8::10')
    status = ask_announcer(announcer_control, Request("status", NodeName(without)))
    vips = tuple(one for one in status.vips if vip is None or one.vip == parse_ip(vip))
    if vip is not None and not vips:
        raise click.ClickException(f"{vip}: this node's announcer knows no such address; its proxy may not serve it")
    if output == "json":
        shown = msgspec.structs.replace(status, vips=vips)
        click.echo(msgspec.json.format(msgspec.json.encode(shown), indent=2))
        return
    _show(status, vips)


def ask_announcer(path: Path, request: Request) -> Status:
    """What it answers; ClickException in plain words if there is none."""
    try:
        return ask(path, request)
    except OSError as error:
        raise click.ClickException(f"no announcer answers at {path}: {error.strerror or error}") from error


def _show(status: Status, vips: tuple[VipStatus, ...]) -> None:
    console = open_console(markup=False)
    table = new_table("", "ADDRESS", "WIRE", "OWNER", "HERE", "NEXT", "CANDIDATES")
    for one in vips:
        candidates = "\n".join(_candidate(candidate) for candidate in one.candidates)
        table.add_row(one.vip, one.wire, one.owner or "nobody", one.mine, ", ".join(one.heirs), candidates)
    console.print(table)
    for one in vips:
        if one.foreign:
            kept = "" if one.owner else ", so nobody takes it"
            console.print(f"{one.vip}: {one.foreign}, which is no node's, answers for it{kept}")
    for one in vips:
        for line in _show_share(one):
            console.print(line)
    for wire in status.wires:
        says = "" if wire.says == "answered" else f"; answers nothing: {wire.says}"
        majority = "a majority" if wire.majority else "no majority"
        console.print(f"{wire.wire}: {1 + len(wire.members)} of {wire.roster} members, {majority}{says}")
    for vip in status.no_interface:
        console.print(f"{vip}: this node has no interface in its subnet (no-interface)")
    for problem in status.problems:
        console.print(f"not used: {problem}")
    if not status.proxy:
        console.print("the proxy on this node doesn't answer: what it last served goes on")
    if status.draining:
        why = f" ({', '.join(status.drains)})" if status.drains else ""
        console.print(f"this node is drained{why}" if status.drained else f"this node is being drained{why}")


def _show_share(one: VipStatus) -> list[str]:
    lines = []
    if one.not_shared:
        lines.append(f"{one.vip}: an L2Advertisement asks for clients to be spread; they aren't: {one.not_shared}")
    if one.sharers:
        lines.append(f"{one.vip}: {one.clients} clients spread over {', '.join(one.sharers)} (experimental)")
    lines += [
        f"{one.vip}: {mac} is a router: all behind it come to one node; ECMP or BGP would spread them"
        for mac in one.routers
    ]
    return lines


def _candidate(one: CandidateStatus) -> str:
    heard = f", heard {one.heard_s:.2f} s ago" if one.heard_s is not None else ""
    preference = f", preference {one.preference}" if one.preference else ""
    return f"{one.node}: {one.why}, {one.tier}{preference}{heard}"
