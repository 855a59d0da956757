"""`python -m e2e.demo.l2`: the demo. Exit code 0: every promise was kept; 1: not, or this host can't do it."""

import signal
import sys
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console

from e2e.binaries.build import BuildError, build
from e2e.closeby import DaemonError
from e2e.controlplane.processes import ComponentError
from e2e.demo.host import check_host, open_console
from e2e.demo.l2.acts import ACTS
from e2e.demo.l2.judge import judge_asked
from e2e.demo.l2.stage import OFFERS, Stage, set_stage
from e2e.demo.l2.tables import show_asked, show_moved, show_result
from e2e.kind.steps import steps_on
from e2e.world.netns import NetnsError
from e2e.world.processes import ProgramError

_INTERRUPTED = 128 + signal.SIGINT


@click.command()
@click.option("--keep", is_flag=True, envvar="KEEP", help="Leave it up until Ctrl-C, and say what to try.")
def main(*, keep: bool) -> None:
    """Show who answers for load-balancer addresses on a LAN, and what a client notices when that node dies.

    Four nodes of network namespaces on one LAN, a real API server, closeby's proxy, controller and announcer. The
    figures are the client's, which is no node.
    """
    check_host("demo-l2")
    console = open_console()
    began = time.monotonic()
    try:
        binary = build("kube", console)
        with (
            tempfile.TemporaryDirectory(prefix="closeby-demo-l2-") as scratch,
            set_stage(binary, Path(scratch), steps_on(console)) as stage,
        ):
            held = tell(stage, console, began)
            if keep:
                _wait(stage, console)
    except KeyboardInterrupt:
        console.print("\nInterrupted; everything is removed.")
        sys.exit(_INTERRUPTED)
    except (
        BuildError,
        ChildProcessError,
        ComponentError,
        DaemonError,
        NetnsError,
        ProgramError,
        TimeoutError,
    ) as error:
        click.echo(f"demo-l2: {error}", err=True)
        sys.exit(1)
    sys.exit(0 if held else 1)


def tell(stage: Stage, console: Console, began: float) -> bool:
    """Both tables; whether every promise was kept. `began`: when all of this did, of time.monotonic()."""
    console.rule("[bold]Who answers for an address, and whose pods[/]")
    console.print("A client on the LAN that is no node connects 200 times to each address.\n")
    asked = [(offer, stage.ask(offer)) for offer in OFFERS]
    rows = [
        (offer.name, offer.shows, stage.address(offer), one, judge_asked(offer.wanted, one)) for offer, one in asked
    ]
    console.print(show_asked(rows))
    console.rule("[bold]The owner of web's address dies, returns, is updated, is drained[/]")
    console.print(
        "The client asks 100 times a second, each time from another port. Before and after: who announces the address,"
        "\nand whose pods answered. Same node: the share that pods of that node answered. Dark: the longest time"
        "\nbetween two answers.\n"
    )
    moved = [(act.title, stage.play(act)) for act in ACTS]
    console.print(show_moved(moved))
    wrong = [complaints for *_, complaints in rows if complaints]
    wrong += [one.complaints for _, one in moved if one.complaints]
    console.print(show_result(len(rows) + len(moved), len(wrong), stage.attempts, time.monotonic() - began))
    return not wrong


def _wait(stage: Stage, console: Console) -> None:
    """Until Ctrl-C."""
    console.rule("[bold]The cluster stays up: try it from another terminal, as root[/]")
    vip, world = stage.address(OFFERS[0]), stage.cluster.world
    node = next(iter(stage.announcers))
    control = stage.announcers[node].control
    console.print(
        f"""
Ask from outside; every answer names the pod:
  ip netns exec {world.outside.netns} curl http://{vip}
  ip netns exec {world.outside.netns} ip neigh show {vip}
Who answers, who comes next, and why the others don't:
  .venv/bin/closeby who-announces {vip} --announcer-control {control}
  .venv/bin/closeby drain --announcer-control {control}
Cut a node's cable, 1 to {len(world.nodes)}, and join it again:
  ip netns exec {world.lan.netns} ip link set port-1 down

Ctrl-C here takes everything down.""",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    try:
        signal.pause()
    except KeyboardInterrupt:
        console.print("\nTaking everything down.")


if __name__ == "__main__":
    main()
