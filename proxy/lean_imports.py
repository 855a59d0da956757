"""EFFECT: imports that cost a process less of its start. Imported before anything that logs.

structlog imports rich wherever it finds it, to colour tracebacks, which here no log line does: a tenth of the start of
`closeby announce`. And Python's collector looks again and again at modules, which all stay: another fifth.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Import in here."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _import_structlog() -> None:
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # "it can't be imported", as importlib has it
    try:
        import structlog  # noqa: F401, PLC0415  # only here without rich
    finally:
        del sys.modules["rich"]


with uncollected():
    _import_structlog()
