"""`closeby move`: gives one load-balancer address to a node of one's choice, without a lost connection."""

import time
from pathlib import Path

import click

from endpointslice.addresses import parse_ip
from endpointslice.types import IP, NodeName
from proxy.announcer.control import Request
from proxy.announcer.status import Status, VipStatus
from proxy.cli.announcer_options import control_option
from proxy.cli.who_announces import ask_announcer
from proxy.config import ConfigError

_LOOK_S = 0.2
_PATIENCE_S = 10.0


@click.command()
@click.argument("vip")
@click.argument("node")
@control_option
def move(vip: str, node: str, announcer_control: Path) -> None:
    """Give the address VIP, which this node answers for, to NODE.

    As in a drain, NODE answers new clients at once; clients that know this node are served by it for the announcer's
    --grace. It stays there until something else moves it: a weight that prefers another node takes it away again,
    so use the Service's annotation closeby.dev/prefer-nodes for good.

    \b
    Examples:
      closeby who-announces 192.0.2.10          who has it, and who could
      closeby move 192.0.2.10 node-2            on the node that has it
      closeby move 2001:db8::10 node-3
    """  # noqa: D301 (click reads the backslash)
    ip = parse_ip(vip)
    if ip is None:
        raise ConfigError(f'VIP: "{vip}" is not an address; write it as 192.0.2.10 or 2001:db8::10')
    status = ask_announcer(announcer_control, Request("status"))
    why = why_not(status, ip, NodeName(node))
    if why:
        raise click.ClickException(f"{ip}: {why}")
    until_s = time.monotonic() + _PATIENCE_S
    ask_announcer(announcer_control, Request("move", vip=ip, to=NodeName(node)))
    while _owner(status, ip) != node:
        if time.monotonic() > until_s:
            raise click.ClickException(f"{ip}: {node} doesn't take it; `closeby who-announces {ip}` there says why")
        time.sleep(_LOOK_S)
        status = ask_announcer(announcer_control, Request("status"))
    click.echo(f"{node} answers for {ip}")


def why_not(status: Status, vip: IP, node: NodeName) -> str:
    """Why the address can't be given to the node from here; "": it may be tried."""
    found = _find(status, vip)
    if found is None:
        return "this node's announcer knows no such address; its proxy may not serve it"
    if found.owner != status.node:
        return f"{found.owner or 'nobody'} answers for it; ask there"
    if node == status.node:
        return "this node has it already"
    candidate = next((one for one in found.candidates if one.node == node), None)
    if candidate is None:
        return f"{node} runs no announcer that is heard here"
    return "" if candidate.why == "eligible" else f"{node} may not have it: {candidate.why}"


def _find(status: Status, vip: IP) -> VipStatus | None:
    return next((one for one in status.vips if one.vip == vip), None)


def _owner(status: Status, vip: IP) -> str:
    found = _find(status, vip)
    return found.owner if found is not None else ""
