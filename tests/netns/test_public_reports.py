"""What went wrong for others' nodes, in small: each test is a public report of Kubernetes' issue tracker."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster.daemon import Daemon, Site
from e2e.controlplane.waiting import wait_for
from e2e.world.netns import command_in, run_ip
from tests.netns.kernel_space import Space
from tests.netns.newer_nft import newer_nft

pytestmark = pytest.mark.netns

NODE = """
kind: Node
metadata: {name: n1}
status: {addresses: [{type: InternalIP, address: 192.0.2.1}]}
"""
SERVICE = """
---
kind: Service
metadata: {{name: web}}
spec: {{clusterIP: "{cluster_ip}", type: NodePort, ports: [{{name: http, port: 80, nodePort: 30080}}]}}
---
kind: EndpointSlice
metadata: {{name: web-1, labels: {{kubernetes.io/service-name: web}}}}
addressType: {family}
ports: [{{name: http, port: 8080}}]
endpoints: [{endpoints}]
"""


class Home:
    """A daemon on a folder, in a namespace."""

    def __init__(self, space: Space, folder: Path) -> None:
        self.space = space
        self.manifests = folder / "manifests"
        self.manifests.mkdir()
        self.daemon = Daemon(Site("n1", space.name, folder), "--manifests", str(self.manifests))

    def write(self, *endpoints: str, cluster_ip: str = "10.96.0.10") -> None:
        """The Service with these endpoints, in one step."""
        text = NODE + SERVICE.format(
            cluster_ip=cluster_ip,
            family="IPv6" if ":" in cluster_ip else "IPv4",
            endpoints=", ".join(f'{{addresses: ["{address}"]}}' for address in endpoints),
        )
        (self.manifests / "new").write_text(text)
        (self.manifests / "new").rename(self.manifests / "web.yaml")

    def start(self, *flags: str) -> None:
        self.daemon.start("--manifests", str(self.manifests), *flags)
        self.daemon.await_ready()

    def wait_listed(self, text: str, what: str) -> None:
        wait_for(lambda: text in self.space.list_text(what), f"{text} is in {what}")


@pytest.fixture
def site(space: Space, tmp_path: Path) -> Iterator[Home]:
    run_ip({space.name: ["link set lo up"]})
    made = Home(space, tmp_path)
    yield made
    made.daemon.kill()


def test_a_service_that_loses_its_endpoints_and_gets_them_back_at_once_is_served(site: Home) -> None:
    """122604: a chain that was to be deleted came back within the second, and "Device or resource busy" stayed."""
    site.write("10.244.0.1")
    site.start()
    for number in range(1, 6):
        site.write()
        site.wait_listed("goto refuse", "map ip closeby no_endpoint_ports")
        site.write(f"10.244.0.{number}")
        site.wait_listed(f"10.244.0.{number} . 8080", "map ip closeby endpoints")
        assert "goto refuse" not in site.space.list_text("map ip closeby no_endpoint_ports")

    assert "goto pick_1" in site.space.list_text("map ip closeby service_ports")
    assert site.daemon.events("sync_failed") == []


def test_what_an_earlier_configuration_put_there_goes_at_a_restart(site: Home) -> None:
    """142183: an element of the old configuration went on refusing after the restart with the new one."""
    run_ip({site.space.name: ["address add 198.51.100.1/32 dev lo"]})
    site.write("10.244.0.1")
    site.start("--nodeport-addresses", "198.51.100.0/24")
    assert "elements = { 198.51.100.1 }" in site.space.list_text("set ip closeby node_addresses")
    site.daemon.stop()

    site.start()

    assert "elements = { 192.0.2.1 }" in site.space.list_text("set ip closeby node_addresses")


@pytest.mark.skipif(newer_nft() is None, reason="no newer nft: python -m tests.netns.newer_nft fetches it")
def test_both_nfts_list_an_ipv6_service_with_one_endpoint(site: Home) -> None:
    """140951: nft died of an assertion at one form of an IPv6 translation."""
    site.write("fd00:10:244::1", cluster_ip="fd00:10:96::a")
    site.start()

    for nft in (["nft"], newer_nft() or []):
        command = command_in(site.space.name, [*nft, "-n", "list", "table", "ip6", "closeby"])
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "fd00:10:244::1 . 8080" in listed
        assert "dnat ip6 to ip6 daddr . meta l4proto . th dport . numgen random mod 1 map @endpoints" in listed
