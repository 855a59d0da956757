"""`closeby drain`: gives this node's load-balancer addresses to others, without a lost connection."""

import time
from pathlib import Path

import click

from proxy.announcer.control import Request
from proxy.cli.announcer_options import control_option
from proxy.cli.who_announces import ask_announcer
from proxy.config import parse_duration

_LOOK_S = 0.2


@click.command()
@click.option("--undo", is_flag=True, help="Take part again.")
@click.option(
    "--wait",
    default="0",
    metavar="DURATION",
    show_default=True,
    help="Wait so long until nothing is answered for here.",
)
@control_option
def drain(*, undo: bool, wait: str, announcer_control: Path) -> None:
    """Give this node's load-balancer addresses away, quietly, and take none until --undo or a restart.

    The Node's annotation closeby.dev/drain=true does the same from afar, and outlasts restarts.

    Others answer new clients at once. Clients that know this node are served by it for the announcer's --grace, so
    established connections go on; then all are told of the new owner.

    \b
    Examples:
      closeby drain --wait 60s        before the node is switched off
      closeby drain --undo
    """  # noqa: D301 (click reads the backslash)
    wait_s = parse_duration("--wait", wait)
    status = ask_announcer(announcer_control, Request("undrain" if undo else "drain"))
    if undo and status.draining:
        raise click.ClickException(f"the node is still drained, by its {' and '.join(status.drains)}")
    if undo:
        click.echo("this node takes part again")
        return
    until_s = time.monotonic() + wait_s
    while not status.drained and time.monotonic() < until_s:
        time.sleep(_LOOK_S)
        status = ask_announcer(announcer_control, Request("status"))
    left = [one.vip for one in status.vips if one.mine != "none"]
    if left and wait_s:
        raise click.ClickException(f"{len(left)} addresses are still answered for here, {left[0]} among them")
    click.echo("drained" if not left else f"draining; {len(left)} addresses are still answered for here")
