"""The control plane comes and goes whole: in a namespace of its own, after an error, after its parent was killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.objects import add_namespace, service
from e2e.controlplane.processes import ComponentError
from e2e.controlplane.settings import Settings
from e2e.controlplane.waiting import wait_for

pytestmark = pytest.mark.e2e

COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager")
PARENT = """
import sys, time
from pathlib import Path
from e2e.controlplane.cluster import ControlPlane
with ControlPlane(Path(sys.argv[1]), Path(sys.argv[2])) as plane:
    print(*(plane.pid(name) for name in sys.argv[3:]), flush=True)
    time.sleep(60)
"""


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.fixture
def lan() -> Iterator[str]:
    """A network namespace without any link to this one; its address is the API server's."""
    name = f"closeby-e2e-cp-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        for what in ("link set lo up", "address add 192.0.2.10/32 dev lo", "address add 2001:db8::10/128 dev lo nodad"):
            subprocess.run(["ip", "-n", name, *what.split()], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_no_process_is_left_after_the_parent_was(kube_binary: Path, tmp_path: Path, end: signal.Signals) -> None:
    command = [sys.executable, "-c", PARENT, str(kube_binary), str(tmp_path), *COMPONENTS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(alive(pids)) == len(COMPONENTS)

        parent.send_signal(end)
        parent.wait(60)

    wait_for(lambda: not alive(pids), "all components have ended")


def test_a_refused_flag_is_told_with_the_log_and_leaves_no_process(kube_binary: Path, tmp_path: Path) -> None:
    plane = ControlPlane(kube_binary, tmp_path, Settings(apiserver_flags=("--no-such-flag",)))

    with pytest.raises(ComponentError, match="unknown flag: --no-such-flag"):
        plane.start()

    with pytest.raises(KeyError):
        plane.pid("etcd")


@pytest.mark.parametrize("address", ["192.0.2.10", "2001:db8::10"], ids=["IPv4", "IPv6"])
def test_a_control_plane_in_a_namespace_works_and_leaves_no_process_after_an_error(
    kube_binary: Path, tmp_path: Path, lan: str, address: str
) -> None:
    settings = Settings(netns=lan, bind_address=address, port=6443, extra_names=("api.lan",))
    pids: list[int] = []

    def story() -> None:
        with ControlPlane(kube_binary, tmp_path, settings) as plane:
            pids.extend(plane.pid(name) for name in COMPONENTS)
            assert alive(pids) == pids
            use(plane, address)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        story()

    assert alive(pids) == []


def use(plane: ControlPlane, address: str) -> None:
    """As stories do: the API, kubectl, and what the server publishes of itself."""
    add_namespace(plane.api, "inside")
    first_ip = plane.api.apply(service("inside/web", {"http": 80}))["spec"]["clusterIP"]

    named = plane.kubectl("-n", "inside", "get", "services", "-o", "name")
    published = wait_for(lambda: plane.api.items("EndpointSlice", "default"), "the API server publishes itself")

    assert (":" in first_ip) == (":" in address)
    assert named == "service/web\n"
    assert published[0]["endpoints"][0]["addresses"] == [address]
    assert published[0]["ports"][0]["port"] == 6443
