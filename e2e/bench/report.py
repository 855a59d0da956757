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


def describe_machine(binary: Path) -> str:
    """Date, kernel, nft, kube-proxy and machine, in one line."""
    memory_kb = int(re.findall(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[0])
    nft = _said("nft", "--version").split()[1]
    peer = _said(str(binary), "kube-proxy", "--version").split()[-1]
    return (
        f"{datetime.now(UTC):%Y-%m-%d}; Linux {platform.release()}, nft {nft}, Python {platform.python_version()}, "
        f"kube-proxy {peer} in nftables mode; {os.cpu_count()} cores ({_processor()}), "
        f"{memory_kb / 1e6:.0f} GB of memory"
    )


def write_markdown(path: Path, rows: Sequence[Row], machine: str) -> None:
    """Replace what stands between the two marks in the file; the text around them is people's."""
    text = path.read_text() if path.exists() else f"# Benchmarks\n\n{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n{machine}\n\n{_table(rows)}{END}{after}")


def _table(rows: Sequence[Row]) -> str:
    head = [COLUMNS, tuple("---" if number == 0 else "---:" for number in range(len(COLUMNS)))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [*head, *(render_cells(row) for row in rows)])


def _said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _processor() -> str:
    names = re.findall(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return names[0] if names else platform.machine()
