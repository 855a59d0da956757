"""EFFECT: imports that cost a process less of its start. Imported before anything that logs.

structlog imports rich wherever it finds it, to colour tracebacks, which here no log line does: a tenth of the start of
`closeby announce`. And Python's collector looks again and again at modules, which all stay: another fifth.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec


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


@contextmanager
def bare_package(name: str) -> Iterator[None]:
    """Import modules of a package in here, all by their own names, without what the package itself imports.

    pyroute2 imports all that it can do: 64 modules and 6 MB that nobody asked for.
    """
    spec = find_spec(name) if name not in sys.modules else None
    if spec is None:  # it is there already, or will be missed in here
        yield
        return
    sys.modules[name] = module_from_spec(spec)  # not executed
    try:
        yield
    finally:
        del sys.modules[name]


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
