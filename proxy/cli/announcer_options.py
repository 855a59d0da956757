"""What the announcer's commands share."""

from pathlib import Path

import click

CONTROL_SOCKET = Path("/run/closeby/announcer.sock")

control_option = click.option(
    "--announcer-control",
    type=click.Path(path_type=Path),
    default=CONTROL_SOCKET,
    show_default=True,
    help="Where `closeby who-announces`, `drain` and `move` ask the announcer; for root only.",
)
