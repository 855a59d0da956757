"""EFFECT: what the demos need of the machine that they run on."""

import os
import shutil
import sys

import click
from rich.console import Console

_WIDTH = 132  # of a picture, and where there is no terminal
_LEAST_WIDTH = 100
_NEEDED = {"ip": "iproute2", "nsenter": "util-linux", "setpriv": "util-linux"}


def check_host(demo: str) -> None:
    """Exit 1 in plain words if this host can't do it; `demo` is its target of make."""
    if os.geteuid() != 0:
        click.echo(f"{demo}: network namespaces need root; run it as root, such as `sudo make {demo}`", err=True)
        sys.exit(1)
    for command, package in _NEEDED.items():
        if shutil.which(command) is None:
            click.echo(f"{demo}: the command {command} is missing; `apt-get install {package}` has it", err=True)
            sys.exit(1)


def open_console(*, picture: bool = False) -> Console:
    """Where the tables go, wide enough for them; `picture`: it remembers what it shows."""
    console = Console(record=picture, highlight=False, emoji=False)  # no emoji: they would stand for parts of addresses
    if picture or not console.is_terminal:
        console.width = _WIDTH
    console.width = max(console.width, _LEAST_WIDTH)
    return console
