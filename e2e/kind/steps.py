"""Progress: one line a step, with its seconds when it is done."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console

Steps = Callable[[str], AbstractContextManager[None]]


def steps_on(console: Console) -> Steps:
    """Steps that show on the console: a spinner on a terminal, and a line for each that is done."""

    @contextmanager
    def step(what: str) -> Iterator[None]:
        began = time.monotonic()
        with console.status(what):
            yield
        console.print(f"{what}: {time.monotonic() - began:.1f} s", markup=False, highlight=False, soft_wrap=True)

    return step
