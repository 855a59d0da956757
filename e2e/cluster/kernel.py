"""EFFECT: what nftables hold in a namespace, by the `nft` program, and what it says of changes."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from e2e.world.netns import command_in

FAMILIES = ("ip", "ip6")
_NFT_S = 60.0
_MONITOR_S = 60.0
_SETTLE_S = 0.2


def nft(netns: str, *words: str) -> str:
    """What nft printed; CalledProcessError if it refused."""
    argv = command_in(netns, ["nft", *words])
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=_NFT_S).stdout


def list_tables(netns: str) -> set[str]:
    """Names of all tables with their family: "ip closeby"."""
    return {line.removeprefix("table ") for line in nft(netns, "list", "tables").splitlines()}


def list_map(netns: str, family: str, name: str) -> list[Any]:
    """The elements of a set or map of ours, as nft's JSON has them."""
    listing = json.loads(nft(netns, "-j", "list", "map", family, "closeby", name))
    found: list[Any] = next(part["map"] for part in listing["nftables"] if "map" in part).get("elem", [])
    return found


def list_rules(netns: str) -> str:
    """Both of our tables as text; empty where there are none."""
    present = list_tables(netns)
    return "".join(nft(netns, "list", "table", f, "closeby") for f in FAMILIES if f"{f} closeby" in present)


@contextmanager
def owned_by_another(netns: str, commands: str) -> Iterator[None]:
    """The commands make tables that are another process's: to everybody else the kernel answers EPERM meanwhile."""
    with subprocess.Popen(
        command_in(netns, ["nft", "-i"]), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as owner:
        assert owner.stdin
        owner.stdin.write(commands.replace("\n", "") + "\n")
        owner.stdin.flush()
        yield
        owner.stdin.close()


class Changes:
    """What `nft monitor` has written."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def lines(self) -> list[str]:
        """Every change of a table of ours so far, one a line."""
        return [line for line in self._path.read_text().splitlines() if " closeby" in line]


@contextmanager
def watched_changes(netns: str, path: Path) -> Iterator[Changes]:
    """Records what happens to our tables meanwhile in a file.

    The monitor is proven deaf to nothing: a table is added and deleted at both ends, and its lines are awaited.
    """
    with path.open("wb") as output:
        process = subprocess.Popen(command_in(netns, ["stdbuf", "-oL", "nft", "monitor"]), stdout=output)
        try:
            _await_heard(netns, path, "monitor_began")
            yield Changes(path)
            _await_heard(netns, path, "monitor_ends")
        finally:
            process.kill()
            process.wait()


def _await_heard(netns: str, path: Path, table: str) -> None:
    deadline = time.monotonic() + _MONITOR_S
    while table not in path.read_text():
        assert time.monotonic() < deadline, "nft monitor reports nothing"
        nft(netns, "add", "table", "ip", table)
        nft(netns, "delete", "table", "ip", table)
        time.sleep(_SETTLE_S)
