"""EFFECT: docs/benchmarks.md, written from the rows of a run."""

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from e2e.bench.rows import COLUMNS, Row, render_cells

BEGIN = "<!-- figures: written by `make bench`, don't edit -->"
END = "<!-- end of figures -->"


def describe_machine(peer: str) -> str:
    """Date, kernel, nft, the peer as given and machine, in one line."""
    memory_kb = int(re.findall(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[0])
    nft = _said("nft", "--version").split()[1]
    return (
        f"{datetime.now(UTC):%Y-%m-%d}; Linux {platform.release()}, nft {nft}, Python {platform.python_version()}, "
        f"{peer}; {os.cpu_count()} cores ({_processor()}), {memory_kb / 1e6:.0f} GB of memory"
    )


def describe_kube_proxy(binary: Path) -> str:
    """The peer and its version."""
    return f"kube-proxy {_said(str(binary), 'kube-proxy', '--version').split()[-1]} in nftables mode"


def write_markdown(path: Path, rows: Sequence[Row], machine: str) -> None:
    """Replace what stands between the two marks in the file; the text around them is people's."""
    write_between(path, (BEGIN, END), f"{machine}\n\n{_table(rows)}")


def write_between(path: Path, marks: tuple[str, str], body: str) -> None:
    """Replace what stands between the two marks; in a file without them they come at the end."""
    begin, end = marks
    text = path.read_text() if path.exists() else "# Benchmarks\n"
    if begin not in text:
        text += f"\n{begin}\n{end}\n"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n{body}{end}{after}")


def _table(rows: Sequence[Row]) -> str:
    head = [COLUMNS, tuple("---" if number == 0 else "---:" for number in range(len(COLUMNS)))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [*head, *(render_cells(row) for row in rows)])


def _said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _processor() -> str:
    names = re.findall(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return names[0] if names else platform.machine()
