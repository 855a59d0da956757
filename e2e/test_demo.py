"""`make demo` as a person meets it: it ends well, it can be interrupted at any time, and it leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from e2e.controlplane.waiting import wait_for
from e2e.demo.acts import ACTS
from e2e.demo.shop import CAST
from e2e.world import netns

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[1]
_END_S = 90.0


@contextmanager
def running_demo(*flags: str, module: str = "e2e.demo") -> Iterator[subprocess.Popen[str]]:
    """The demo as a process of a session of its own, killed at the end if it still runs."""
    with subprocess.Popen(
        [sys.executable, "-m", module, *flags],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_the_demo_keeps_every_promise_shows_them_and_can_be_played_with(tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    with running_demo("--keep", "--svg", str(picture)) as demo:
        output = read_until(demo, "Ctrl-C here takes everything down")
        curl = re.search(r"ip netns exec \S+client-east1 curl http://\S+", output)
        assert curl is not None, output
        answer = subprocess.run(curl[0].split(), capture_output=True, text=True, timeout=_END_S, check=True)
        left = begin_to_end(demo, signal.SIGINT)

    assert demo.returncode == 0, output
    assert re.search(r"\d{4,} connections and exchanges, \d{2} promises, 0 broken", output)
    assert " NO " not in output
    assert [offer.name for offer in CAST.offers if offer.name not in output] == []
    assert [act.title for act in ACTS if act.title not in output] == []
    assert re.search(r'"name": "web-east[12]"', answer.stdout)
    assert picture.read_text().startswith("<svg")
    assert left == []


@pytest.mark.parametrize(
    ("line", "number"),
    [
        pytest.param("The cluster", signal.SIGINT, id="Ctrl-C once the cluster stands"),
        pytest.param("Starting closeby", signal.SIGINT, id="Ctrl-C while the daemons start"),
        pytest.param("kube-system/dns", signal.SIGTERM, id="SIGTERM while everyone asks"),
        pytest.param("goes unready", signal.SIGINT, id="Ctrl-C while traffic runs through a change"),
    ],
)
def test_a_demo_that_is_stopped_leaves_nothing_behind(line: str, number: signal.Signals) -> None:
    with running_demo() as demo:
        read_until(demo, line)
        left = begin_to_end(demo, number)

    assert demo.returncode == 128 + number
    assert left == []


@pytest.mark.usefixtures("kube_binary")
def test_the_demo_of_addresses_keeps_its_promises_and_can_be_played_with() -> None:
    with running_demo("--keep", module="e2e.demo.l2") as demo:
        output = read_until(demo, "Ctrl-C here takes everything down")
        curl = re.search(r"ip netns exec \S+outside curl http://\S+", output)
        assert curl is not None, output
        answer = subprocess.run(curl[0].split(), capture_output=True, text=True, timeout=_END_S, check=True)
        left = begin_to_end(demo, signal.SIGINT, "demol2")

    assert demo.returncode == 0, output
    assert re.search(r"\d{4,} connections and exchanges, 8 promises, 0 broken", output)
    assert " NO " not in output
    assert '"name": "shop-web-' in answer.stdout
    assert left == []


@pytest.mark.usefixtures("kube_binary")
def test_a_demo_of_addresses_that_is_stopped_leaves_nothing_behind() -> None:
    with running_demo(module="e2e.demo.l2") as demo:
        read_until(demo, "closeby controller")
        left = begin_to_end(demo, signal.SIGTERM, "demol2")

    assert demo.returncode == 128 + signal.SIGTERM
    assert left == []


@pytest.mark.parametrize(
    ("module", "name"),
    [
        pytest.param("e2e.demo", "demo", id="make demo"),
        pytest.param("e2e.demo.l2", "demo-l2", id="make demo-l2"),
    ],
)
def test_without_root_it_says_so(module: str, name: str) -> None:
    demo = [sys.executable, "-m", module]
    done = subprocess.run(["unshare", "--user", *demo], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr == f"{name}: network namespaces need root; run it as root, such as `sudo make {name}`\n"


def read_until(demo: subprocess.Popen[str], words: str) -> str:
    """The output up to a line with these words."""
    assert demo.stdout
    lines: list[str] = []
    for line in demo.stdout:
        lines.append(line)
        if words in line:
            return "".join(lines)
    raise AssertionError(f"it ended without {words!r}:\n{''.join(lines)}")


def begin_to_end(demo: subprocess.Popen[str], number: signal.Signals, label: str = "demo") -> list[str]:
    """Send the signal, wait for the end, and what is left of the demo then: namespaces, processes, files."""
    prefix = f"closeby-{label}-{demo.pid}-"
    inhabitants = netns.list_inhabitants(netns.list_namespaces(prefix))
    scratches = {path for pid in inhabitants for path in find_scratches(pid)}
    os.kill(demo.pid, number)
    demo.communicate(timeout=_END_S)
    with suppress(TimeoutError):  # one that was just being started dies with its parent, a moment later
        wait_for(lambda: not any(map(is_running, inhabitants)), "all have ended", timeout_s=_END_S)
    processes = [f"process {pid}" for pid in inhabitants if is_running(pid)]
    return [*netns.list_namespaces(prefix), *processes, *(path for path in scratches if Path(path).exists())]


def find_scratches(pid: int) -> list[str]:
    """Folders of the demo that a process was told of."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return []
    return re.findall(rf"{re.escape(tempfile.gettempdir())}/closeby-demo-[^/\0]+", words)


def is_running(pid: int) -> bool:
    """A process that nobody has reaped yet runs no more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
