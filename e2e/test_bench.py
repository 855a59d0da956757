"""The benchmark measures both proxies at a small scale, says what it found in lines, and leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.bench.rows import Figure, make_row, pick, render_cells, render_json
from e2e.bench.scale import Scale
from e2e.controlplane.waiting import wait_for
from e2e.world.netns import list_namespaces

pytestmark = pytest.mark.e2e

SMALL = ("--scale=20x3", "--starts=1", "--patches=5", "--changes=20", "--flows=400", "--seconds=0.2")
KEYS = {"work", "services", "endpoints_per_service", "closeby", "kube_proxy", "ratio", "unit"}


def start_bench(*flags: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "e2e.bench", *SMALL, *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_both_proxies_are_measured_and_nothing_is_left(kube_binary: Path, tmp_path: Path) -> None:
    assert kube_binary.exists()
    markdown = tmp_path / "benchmarks.md"
    markdown.write_text(
        "# Ours\n<!-- figures: written by `make bench`, don't edit -->\nold\n<!-- end of figures -->\nend\n"
    )

    process = start_bench(f"--markdown={markdown}")
    said, progress = process.communicate(timeout=280)

    assert process.returncode == 0, progress
    rows = [json.loads(line) for line in said.splitlines()]
    assert all(row.keys() >= KEYS for row in rows)
    assert {(row["services"], row["endpoints_per_service"]) for row in rows} == {(10, 3), (20, 3)}
    assert {"first sync", "resident memory", "watch event to kernel, p99", "connect time, p99"} <= {
        row["work"] for row in rows
    }
    assert all(row["kube_proxy"] is not None for row in rows)
    assert all(row["closeby"] > 0 for row in rows if row["work"] in {"first sync", "resident memory"})
    text = markdown.read_text()
    assert text.startswith("# Ours\n")
    assert text.endswith("-->\nend\n")
    assert "| first sync | 20 x 3 |" in text
    assert "old" not in text
    assert list_namespaces(f"closeby-bench-{process.pid}-") == []


def test_an_interrupted_benchmark_leaves_nothing(kube_binary: Path, tmp_path: Path) -> None:
    assert kube_binary.exists()
    process = start_bench("--no-peer", f"--folder={tmp_path}")

    def is_started() -> bool:
        assert process.poll() is None, process.communicate()
        return (tmp_path / "20x3" / "logs" / "closeby.log").exists()

    wait_for(is_started, "closeby was started", timeout_s=180)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)

    assert process.returncode != 0
    assert list_namespaces(f"closeby-bench-{process.pid}-") == []
    # One that was just being started isn't ended but dies with its parent, by the kernel, a moment later.
    wait_for(lambda: not processes_of(tmp_path), "no process is left")


def processes_of(folder: Path) -> list[int]:
    """Processes that were started with a path below the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes()
        except OSError:
            continue
        if str(folder).encode() in command and int(entry.parent.name) != os.getpid():
            found.append(int(entry.parent.name))
    return found


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        pytest.param(["--scale=many"], "write SERVICESxENDPOINTS", id="no scale"),
        pytest.param(["--scale=70000x1"], "have room", id="more Services than addresses"),
        pytest.param(["--scale=1x5000"], "fit into a slice", id="more endpoints than a slice takes"),
    ],
)
def test_a_scale_that_cannot_be_is_told(flags: list[str], complaint: str) -> None:
    process = start_bench(*flags)
    _, said = process.communicate(timeout=60)

    assert process.returncode == 2
    assert complaint in " ".join(said.split())


def test_a_quantile_is_one_of_the_samples() -> None:
    samples = [float(number) for number in range(200)]

    assert pick(samples, 0.99) == Figure(198.0, 200)
    assert pick(samples) == Figure(100.0, 200)
    assert pick([3.0], 0.99) == Figure(3.0, 1)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [pytest.param(1.0, "< 1.2 s", id="met"), pytest.param(1.3, "< 1.2 s (missed)", id="missed")],
)
def test_a_target_stands_beside_its_figure(seconds: float, shown: str) -> None:
    row = make_row("first sync", Scale(10_000, 5), "s", (Figure(seconds, 5), Figure(26.0)))

    assert shown in render_cells(row)
    assert json.loads(render_json(row))["target"] == 1.2


def test_without_a_peer_there_is_no_ratio() -> None:
    line = json.loads(render_json(make_row("first sync", Scale(5, 5), "s", (Figure(1.0), None))))

    assert line["ratio"] is None
    assert line["kube_proxy"] is None
