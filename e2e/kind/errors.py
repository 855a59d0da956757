"""What can go wrong with a cluster, told in a sentence."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from deploy.image.debian import DebianError
from e2e.binaries.build import BuildError
from e2e.kind.daemon import DockerdError
from e2e.kind.docker import CommandError
from e2e.world.netns import NetnsError


@contextmanager
def plain_errors(program: str, console: Console) -> Iterator[None]:
    """What the block can't do ends the process with code 1 and the program's name before the reason."""
    try:
        yield
    except (BuildError, CommandError, DebianError, DockerdError, NetnsError, TimeoutError) as error:
        console.print(f"{program}: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
