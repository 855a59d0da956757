"""`closeby announce --realtime-priority`: all of it runs before what is usual, or it says why not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.netns.announcer.lan import KEY, V4, open_lan, wait_for

pytestmark = pytest.mark.netns

_END_S = 60.0


def test_every_thread_of_it_comes_before_usual_processes_and_none_may_spin_for_ever(tmp_path: Path) -> None:
    with open_lan(tmp_path, count=1, flags=("--realtime-priority", "10")) as lan:
        (node,) = lan.nodes
        lan.start(V4[0])
        wait_for(lambda: lan.owner(V4[0]) is node)

        threads = [int(one.name) for one in Path(f"/proc/{node.pid}/task").iterdir()]
        policies = {(os.sched_getscheduler(one), os.sched_getparam(one).sched_priority) for one in threads}
        limits = Path(f"/proc/{node.pid}/limits").read_text()

    assert len(threads) > 1
    assert policies == {(os.SCHED_RR, 10)}
    assert [line.split()[-3:] for line in limits.splitlines() if line.startswith("Max realtime timeout")] == [
        ["5000000", "5000000", "us"]
    ]


def test_without_the_right_to_it_the_flag_is_named(tmp_path: Path) -> None:
    (tmp_path / "1").write_bytes(KEY)
    command = [sys.executable, "-m", "proxy", "announce", "--keys", str(tmp_path), "--realtime-priority", "10"]
    without = ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice", "--"]

    done = subprocess.run([*without, *command], capture_output=True, text=True, check=False, timeout=_END_S)

    assert done.returncode == 1
    assert "--realtime-priority: 10: Operation not permitted: it needs CAP_SYS_NICE" in done.stderr
