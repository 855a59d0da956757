"""A daemon whose kernel refuses, and one whose disk is full."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.cluster.daemon import HEALTHZ_PORT, Daemon, Site, run_closeby
from e2e.cluster.kernel import owned_by_another
from e2e.controlplane.waiting import wait_for
from e2e.world.netns import run_ip
from tests.netns.kernel_space import Space

pytestmark = pytest.mark.netns

FAILURES = "kubeproxy_sync_proxy_rules_nftables_sync_failures_total"
WEB = """
kind: Service
metadata: {name: NAME}
spec: {clusterIP: ADDRESS, ports: [{port: 80}]}
---
kind: EndpointSlice
metadata: {name: NAME-1, labels: {kubernetes.io/service-name: NAME}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.244.0.1]}]
"""


def write(folder: Path, name: str, address: str) -> None:
    (folder / f"{name}.yaml").write_text(WEB.replace("NAME", name).replace("ADDRESS", address))


@pytest.fixture
def daemon(space: Space, tmp_path: Path) -> Iterator[Daemon]:
    run_ip({space.name: ["link set lo up"]})
    folder = tmp_path / "manifests"
    folder.mkdir()
    write(folder, "web", "10.96.0.10")
    made = Daemon(Site("n1", space.name, tmp_path), "--manifests", str(folder), "--sync-period", "500ms")
    yield made
    made.kill()


def test_a_kernel_that_refuses_is_asked_again_told_of_and_leaves_its_tables_as_they_are(
    space: Space, daemon: Daemon, tmp_path: Path
) -> None:
    daemon.start()
    daemon.await_ready()
    take = "delete table ip closeby; add table ip closeby { flags owner; }; add chain ip closeby theirs"
    with owned_by_another(space.name, take):
        wait_for(lambda: daemon.http(HEALTHZ_PORT, "/healthz")[0] == 503, "/healthz says 503")
        write(tmp_path / "manifests", "late", "10.96.0.11")
        first = wait_for(lambda: daemon.metric(FAILURES), "refusals are counted")
        wait_for(lambda: daemon.metric(FAILURES) > first, "it is tried again")
        assert "chain theirs" in space.list_text("table ip closeby")
        assert daemon.http(HEALTHZ_PORT, "/livez")[0] == 503

    wait_for(lambda: daemon.http(HEALTHZ_PORT, "/healthz")[0] == 200, "/healthz says 200")
    ports = space.list_text("map ip closeby service_ports")
    assert "10.96.0.10 . " in ports
    assert "10.96.0.11 . " in ports
    assert {"not permitted" in event["why"] for event in daemon.events("sync_failed")} == {True}


@contextmanager
def small_disk(folder: Path, inodes: int) -> Iterator[Path]:
    """A file system with room for so many files, its root among them."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"nr_inodes={inodes}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_without_room_for_the_lock_it_says_so_and_touches_nothing(space: Space, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        place = str(disk / "closeby.sock")
        ended = run_closeby(space.name, "run", "--manifests", str(tmp_path), "--control-socket", place)

    assert (ended.code, ended.output) == (1, "")
    last = ended.error.splitlines()[-1]
    assert last.startswith("closeby: --control-socket: can't write ")
    assert last.endswith("closeby.sock.lock: No space left on device")
    assert space.list_text("tables") == ""


def test_without_room_for_the_socket_it_goes_on_without_dumps(space: Space, tmp_path: Path) -> None:
    run_ip({space.name: ["link set lo up"]})
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    write(manifests, "web", "10.96.0.10")
    with small_disk(tmp_path / "disk", 3) as disk:
        daemon = Daemon(Site("n1", space.name, disk), "--manifests", str(manifests))  # its log is the third file
        daemon.log_file.touch()
        try:
            daemon.start()
            daemon.await_ready()

            assert "10.96.0.10 . " in space.list_text("map ip closeby service_ports")
            assert "No space left on device" in daemon.log_file.read_text()
            assert not daemon.socket.exists()
        finally:
            daemon.kill()
