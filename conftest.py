"""How tests are dealt out to processes that run side by side (pytest-xdist), and Ctrl-C for all of them.

Tests of one file stay together, and so do the files that share what takes long to start: two processes have a cluster,
and one has a control plane. These come first, then what waits much, so that the many short files fill in at the end.
"""

import ast
import signal
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

_CLUSTERS = 2
_CLUSTER = {"cluster", "built_cluster", "space"}
_PLANE = {"control_plane", "address_controller", "shop", "source_api"}
_ORDER = ("cluster", "control plane", "e2e/", "tests/netns/", "tests/unit/")
_ROOT = Path(__file__).parent


class _BySharing(LoadScopeScheduling):  # type: ignore[misc]  # it says no types
    """A test's scope is its file, or what the file shares.

    Not by `--dist loadgroup`: with pytest 9.2, pytest-xdist 3.8 overlooks its marks, and says nothing.
    """

    def _split_scope(self, nodeid: str) -> str:
        return _group_of(_file_of(nodeid))


@pytest.hookimpl(optionalhook=True)  # unknown where `-p no:xdist` is
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:  # noqa: ANN401  # not theirs
    """Scopes in the order that the processes found, below."""
    config.option.loadscopereorder = False
    return _BySharing(config, log)


def pytest_configure() -> None:
    """A background job of a shell ignores Ctrl-C, and whatever it starts would too: tests send it to programs."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)  # pytest-randomly has shuffled by then
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sorts the tests of a process among others; where all run in one, nothing changes."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _rank(_group_of(_file_of(item.nodeid))))


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


@cache
def _group_of(file: str) -> str:
    """By the names of its functions' parameters, which are fixtures. To be wrong costs a start more, and no more."""
    functions = (node for node in ast.walk(ast.parse((_ROOT / file).read_text())) if isinstance(node, ast.FunctionDef))
    names = {argument.arg for function in functions for argument in function.args.args}
    if not file.startswith("e2e/"):
        return file
    if names & _CLUSTER:
        return f"cluster {crc32(file.encode()) % _CLUSTERS}"
    return "control plane" if names & _PLANE else file


def _rank(group: str) -> int:
    return next((rank for rank, start in enumerate(_ORDER) if group.startswith(start)), len(_ORDER))
