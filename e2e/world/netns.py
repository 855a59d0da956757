"""EFFECT: named network namespaces: made, entered, swept and removed.

A name tells its owner: `closeby-<label>-<pid>-<count>-<host>`. So what a killed run left behind is known by its dead
pid, and removal needs no list: everything with the prefix goes.
"""

import ctypes
import itertools
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

_FOLDER = Path("/run/netns")
_OWNED = re.compile(r"closeby-[a-z0-9]+-(?P<pid>\d+)-\d+-.+")
_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)  # os.setns is Python 3.12
_COUNT = itertools.count(1)
_KILL_S = 1.0
_KILL_POLL_S = 0.005
_SYSCTLS = Path("/proc/sys/net")

T = TypeVar("T")


class NetnsError(Exception):
    """A namespace, link or route can't be made; the text is what `ip` said, or what is missing."""


def unique_prefix(label: str) -> str:
    """Prefix for the namespaces of one world. ValueError if the label isn't [a-z0-9]+."""
    prefix = f"closeby-{label}-{os.getpid()}-{next(_COUNT)}-"
    if not _OWNED.fullmatch(prefix + "x"):
        raise ValueError(f"label {label!r}: only a-z and 0-9")
    return prefix


def command_in(netns: str, argv: Iterable[str]) -> list[str]:
    """The command as run in the namespace; nsenter becomes it, so its pid is the command's."""
    return ["nsenter", f"--net={_FOLDER / netns}", "--", *argv]


def run_in(netns: str, function: Callable[[], T]) -> T:
    """What the function returns in the namespace. It runs on a thread of its own, since a namespace is a thread's."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(_enter_and_call, netns, function).result()


def create_namespaces(names: Iterable[str]) -> None:
    """Make them, empty: even `lo` is down."""
    run_ip({None: [f"netns add {name}" for name in names]})


def run_ip(lines: Mapping[str | None, Iterable[str]]) -> None:
    """Run `ip -batch` in each namespace at once (None: the caller's). NetnsError with the first complaint."""
    started = []
    for netns, batch in lines.items():
        where = ["-netns", netns] if netns else []
        process = subprocess.Popen(
            ["ip", *where, "-batch", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append((netns, process, "".join(f"{line}\n" for line in batch)))
    failed = []
    try:
        for netns, process, text in started:
            _, complaint = process.communicate(text)
            if process.returncode != 0:
                failed.append(f"{netns or 'ip'}: {complaint.strip() or process.returncode}")
    except BaseException:  # such as Ctrl-C: who removes it all next mustn't meet one that still makes more
        for _netns, process, _text in started:
            process.kill()
            process.wait()
        raise
    if failed:
        raise NetnsError(failed[0])


def write_sysctls(netns: str, values: Mapping[str, str]) -> None:
    """Set keys below net, such as "ipv4/ip_forward", in the namespace."""

    def write() -> None:
        for key, value in values.items():
            (_SYSCTLS / key).write_text(value)

    run_in(netns, write)


def remove_namespaces(names: Iterable[str]) -> None:
    """Kill whatever runs in them, then remove them with all their links.

    Names that are gone already don't matter, nor those that another process removes meanwhile: two may sweep at once.
    """
    wanted = list(names)
    while present := _find_present(wanted):
        _kill_inhabitants(present)
        try:
            run_ip({None: [f"netns delete {name}" for name in present]})
        except NetnsError:
            if _find_present(wanted) == present:
                raise


def list_namespaces(prefix: str) -> list[str]:
    """Names with the prefix."""
    return sorted(path.name for path in _FOLDER.glob(f"{prefix}*"))


def sweep_namespaces() -> list[str]:
    """Remove the namespaces of runs whose process is dead; their names."""
    owners = ((path.name, _OWNED.fullmatch(path.name)) for path in _FOLDER.glob("closeby-*"))
    left = [name for name, owner in owners if owner and not _is_alive(int(owner["pid"]))]
    remove_namespaces(left)
    return left


def list_inhabitants(names: Iterable[str]) -> list[int]:
    """Process ids whose network namespace is one of these."""
    inodes = {inode for name in names if (inode := _find_inode(_FOLDER / name)) is not None}
    processes = Path("/proc").glob("[0-9]*")
    return [int(process.name) for process in processes if _find_inode(process / "ns" / "net") in inodes]


def _kill_inhabitants(names: Iterable[str]) -> None:
    """Returns when they are gone, or after a second: one that hangs in the kernel goes later, with its namespace."""
    watched = list(names)
    deadline = time.monotonic() + _KILL_S
    while (pids := list_inhabitants(watched)) and time.monotonic() < deadline:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(_KILL_POLL_S)


def _find_present(names: Iterable[str]) -> list[str]:
    return [name for name in names if (_FOLDER / name).exists()]


def _find_inode(namespace: Path) -> int | None:
    """None: the process ended, or the namespace was removed, meanwhile."""
    try:
        return namespace.stat().st_ino
    except OSError:
        return None


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _enter_and_call(netns: str, function: Callable[[], T]) -> T:
    with (_FOLDER / netns).open() as file:
        if _LIBC.setns(file.fileno(), _CLONE_NEWNET) != 0:
            raise NetnsError(f"{netns}: {os.strerror(ctypes.get_errno())}")
    return function()
