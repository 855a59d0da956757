"""The flags about log lines of commands that run until they are stopped."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def log_options(command: F) -> F:
    """The command with --log-format, passed as `log_format`, and -v, passed as `verbosity`."""
    look = click.option(
        "--log-format",
        type=click.Choice(["auto", "json", "console"]),
        default="auto",
        show_default=True,
        help="How log lines look; auto is console on a terminal.",
    )
    level = click.option(
        "-v", "--v", "verbosity", type=click.IntRange(min=0), default=0, show_default=True, help="4: debug lines."
    )
    return look(level(command))
