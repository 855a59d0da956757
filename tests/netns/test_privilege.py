"""A process whose right is only permitted, as an image's interpreter gives it to a user who isn't root."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.netns

CHILD = """
from pathlib import Path
from proxy.privilege import CAP_NET_ADMIN, raise_net_admin, read_sets, set_capabilities

def sets():
    return read_sets(Path("/proc/self/status").read_text())

set_capabilities(PERMITTED, 0, 0)
assert sets() == (PERMITTED, 0, 0)
raise_net_admin()
print(*sets()[:2])
"""


@pytest.mark.parametrize(
    ("permitted", "effective"),
    [
        pytest.param(1 << 12, 1 << 12, id="what is permitted is used"),
        pytest.param(1 << 12 | 1 << 13, 1 << 12, id="and nothing else"),
        pytest.param(1 << 13, 0, id="what isn't permitted is done without"),
    ],
)
def test_the_right_is_made_effective_where_it_is_permitted(permitted: int, effective: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD.replace("PERMITTED", str(permitted))], capture_output=True, text=True, check=False
    )

    assert done.stderr == ""
    assert done.stdout.split() == [str(permitted), str(effective)]


HASTY = """
import os
from proxy.announcer.priority import run_in_real_time
from proxy.privilege import set_capabilities

set_capabilities(1 << 23, 0, 0)
run_in_real_time(7)
print(os.sched_getscheduler(0) == os.SCHED_RR, os.sched_getparam(0).sched_priority)
"""


def test_an_announcer_uses_a_right_to_real_time_that_is_only_permitted() -> None:
    done = subprocess.run([sys.executable, "-c", HASTY], capture_output=True, text=True, check=False)

    assert done.stderr == ""
    assert done.stdout == "True 7\n"
