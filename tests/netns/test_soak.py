"""What the loop keeps over many changes: nothing of what is gone. CLOSEBY_SOAK changes, 8000 by default."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from e2e.cluster.daemon import HEALTHZ_PORT, METRICS_PORT, Daemon, Site
from e2e.world.netns import command_in, run_in, run_ip
from proxy.control import read_dump
from tests.builders import service_json, slice_json
from tests.netns.kernel_space import Space
from tests.netns.soak import LIVE

pytestmark = [pytest.mark.netns, pytest.mark.timeout(3600)]

CHANGES = int(os.environ.get("CLOSEBY_SOAK", "8000"))
MOST_RSS_KB = 6 << 10  # between the warm-up and the end: what the allocator scatters
MOST_OBJECTS = 3000  # of some 40,000: half a batch more or less


def test_memory_and_files_are_flat_while_everything_changes_hands(space: Space, python: list[str]) -> None:
    done = subprocess.run(
        command_in(space.name, [*python, "-m", "tests.netns.soak", str(CHANGES)]),
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )

    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    print(f"{CHANGES} changes: {said}")  # noqa: T201  # shown with -s
    warm, end = said["warm"], said["end"]
    assert end["files"] == warm["files"]
    assert end["objects"] - warm["objects"] < MOST_OBJECTS
    assert end["rss_kb"] - warm["rss_kb"] < MOST_RSS_KB
    assert said["kept"]["services"] <= LIVE
    assert said["kept"]["pods"] <= 4 * LIVE


ROUNDS = 60
MOST_DAEMON_RSS_KB = 8 << 10


def test_a_daemon_that_is_asked_while_its_folder_changes_keeps_no_file_and_no_memory(
    space: Space, tmp_path: Path
) -> None:
    run_ip({space.name: ["link set lo up"]})
    folder = tmp_path / "manifests"
    folder.mkdir()
    daemon = Daemon(Site("n1", space.name, tmp_path), "--manifests", str(folder))
    daemon.start()
    try:
        daemon.await_ready()
        used = [_ask_and_edit(daemon, folder, number) for number in range(ROUNDS)]
    finally:
        daemon.kill()

    (warm_files, warm_kb), (_files, rss_kb) = used[ROUNDS // 3], used[-1]
    # A connection that is over may still be open: the daemon's end of it closes a moment later.
    least = min(count for count, _rss in used[-ROUNDS // 3 :])
    assert least <= min(count for count, _rss in used[: ROUNDS // 3]) + 1, used
    assert warm_files > 0
    assert rss_kb - warm_kb < MOST_DAEMON_RSS_KB, used


def _ask_and_edit(daemon: Daemon, folder: Path, number: int) -> tuple[int, int]:
    """Another Service in place of the last, every page and a dump read; the daemon's files, and its RSS in KB."""
    name, ip = f"default/web-{number}", f"10.96.0.{number + 1}"
    ends = [{"addresses": [f"10.244.{number}.{last}"]} for last in range(1, 200)]
    labels = {"kubernetes.io/service-name": f"web-{number}"}
    items = [service_json(name, clusterIP=ip, clusterIPs=[ip]), slice_json(f"{name}-1", labels=labels, endpoints=ends)]
    (folder / "web.json").write_text(json.dumps({"kind": "List", "items": items}))
    for _again in range(5):
        assert daemon.http(HEALTHZ_PORT, "/healthz")[0] == 200
        assert daemon.http(METRICS_PORT, "/metrics")[0] == 200
        assert run_in(daemon.site.netns, lambda: read_dump(daemon.socket))
    process = Path(f"/proc/{daemon.running.pid}")
    pages = int((process / "statm").read_text().split()[1])
    return len([*(process / "fd").iterdir()]), pages * os.sysconf("SC_PAGE_SIZE") >> 10
