"""What the loop keeps over many changes: nothing of what is gone. CLOSEBY_SOAK changes, 8000 by default."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from e2e.world.netns import command_in
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
