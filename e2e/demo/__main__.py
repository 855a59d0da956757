"""`python -m e2e.demo`: the demo. Exit code 0: every promise was kept; 1: not, or this host can't do it."""

import re
import signal
import sys
from pathlib import Path

import click
from rich.console import Console

from e2e.closeby import DaemonError
from e2e.demo.host import check_host, open_console
from e2e.demo.promises import PlanError
from e2e.demo.story import set_stage, show_hints, tell
from e2e.world.netns import NetnsError
from e2e.world.processes import ProgramError

_FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # a font from another host; any monospace one will do
_INTERRUPTED = 128 + signal.SIGINT


@click.command()
@click.option("--keep", is_flag=True, envvar="KEEP", help="Leave the cluster up until Ctrl-C, and say what to try.")
@click.option("--svg", type=click.Path(path_type=Path), help="Save a picture of the output to this file.")
def main(svg: Path | None, *, keep: bool) -> None:
    """Show closeby on a little cluster of network namespaces, with every promise checked against real connections."""
    check_host("demo")
    console = open_console(picture=svg is not None)
    try:
        held = _play(console, keep=keep)
    except KeyboardInterrupt:
        console.print("\nInterrupted; everything is removed.")
        sys.exit(_INTERRUPTED)
    except (DaemonError, NetnsError, PlanError, ProgramError) as error:
        click.echo(f"demo: {error}", err=True)
        sys.exit(1)
    if svg is not None:
        svg.write_text(_FONT_FACE.sub("", console.export_svg(title="make demo")))
    sys.exit(0 if held else 1)


def _play(console: Console, *, keep: bool) -> bool:
    with set_stage(console) as stage:
        held = tell(stage, console)
        if keep:
            show_hints(stage, console)
            try:
                signal.pause()
            except KeyboardInterrupt:
                console.print("\nTaking everything down.")
    return held


if __name__ == "__main__":
    main()
