"""A life of the daemon beside a set that nft 1.1.3 wrote in the form that crashes nft 1.0.6 (kubernetes#136786)."""

import subprocess
from pathlib import Path

import pytest

from e2e.cluster.daemon import Daemon, Site
from e2e.controlplane.waiting import wait_for
from e2e.world.netns import command_in, run_ip
from tests.netns.kernel_space import Space
from tests.netns.newer_nft import newer_nft

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(newer_nft() is None, reason="no newer nft: python -m tests.netns.newer_nft fetches it"),
]

FOREIGN = """
table ip other {
    set s { type ipv4_addr; elements = { 10.0.0.1 }; }
    map v { type inet_service : verdict; flags interval; elements = { 80-90 : drop }; }
}
"""
SERVICE = """
kind: Node
metadata: {{name: n1}}
status: {{addresses: [{{type: InternalIP, address: 192.0.2.1}}]}}
---
kind: Service
metadata: {{name: web}}
spec: {{clusterIP: 10.96.0.10, ports: [{{name: http, port: 80}}]}}
---
kind: EndpointSlice
metadata: {{name: web-1, labels: {{kubernetes.io/service-name: web}}}}
addressType: IPv4
ports: [{{name: http, port: 8080}}]
endpoints: [{endpoints}]
"""


def write_manifest(folder: Path, endpoints: int) -> None:
    listed = ", ".join(f"{{addresses: [10.244.0.{number}]}}" for number in range(1, endpoints + 1))
    (folder / "web.yaml").write_text(SERVICE.format(endpoints=listed))


def run_newer(space: Space, text: str) -> str:
    command = command_in(space.name, [*(newer_nft() or ()), "-n", "-f", "-"])
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def test_the_daemon_starts_syncs_gets_a_new_pick_chain_restarts_and_cleans_up(space: Space, tmp_path: Path) -> None:
    run_ip({space.name: ["link set lo up"]})
    run_newer(space, FOREIGN)
    foreign = run_newer(space, "list table ip other")
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    write_manifest(manifests, 2)
    daemon = Daemon(Site("n1", space.name, tmp_path), "--manifests", str(manifests))
    try:
        daemon.start()
        daemon.await_ready()
        assert "goto pick_2" in run_newer(space, "list map ip closeby service_ports")

        write_manifest(manifests, 7)
        wait_for(
            lambda: "goto pick_7" in run_newer(space, "list map ip closeby service_ports"), "7 endpoints are there"
        )
        assert "numgen random mod 7 map @endpoints" in space.list_text("chain ip closeby pick_7")  # the old nft's words

        assert daemon.stop() == 0
        daemon.start()
        daemon.await_ready()
        assert daemon.events("sync_failed") == []
        assert daemon.command("cleanup").code == 1  # it runs
        assert daemon.stop() == 0
        ended = daemon.command("cleanup")
    finally:
        daemon.kill()

    assert (ended.code, ended.error) == (0, "")
    assert run_newer(space, "list ruleset") == foreign


def test_kube_proxys_tables_go_beside_it(space: Space, tmp_path: Path) -> None:
    run_newer(space, FOREIGN)
    run_newer(space, "add table ip kube-proxy\nadd table ip6 kube-proxy\n")

    ended = Daemon(Site("n1", space.name, tmp_path), "--manifests", str(tmp_path)).run("cleanup", "--kube-proxy")

    assert (ended.code, ended.output) == (0, "Removed table ip kube-proxy\nRemoved table ip6 kube-proxy\n")
    assert run_newer(space, "list tables") == "table ip other\n"
