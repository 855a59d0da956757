"""EFFECT: processes that want all of the CPU."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def run_hogs(count: int) -> Iterator[None]:
    """So many, until the block ends."""
    command = ["setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-I", "-S", "-c", "while True: pass"]
    hogs = [subprocess.Popen(command, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
        for hog in hogs:
            hog.wait()
