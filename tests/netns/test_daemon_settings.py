"""A daemon under settings of kube-proxy that follow the node: where NodePorts answer, and what tells its pods."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster.daemon import HEALTHZ_PORT
from e2e.controlplane.waiting import wait_for
from e2e.world.netns import run_ip
from tests.netns.kernel_space import Space
from tests.netns.test_public_reports import NODE, Home
from tests.unit.proxy.kubeproxy.documents import SMALL

pytestmark = pytest.mark.netns

CLAIMING = """
kind: Service
metadata: {name: claiming}
spec: {clusterIP: 10.96.0.77, externalIPs: [198.51.100.7], ports: [{port: 80}]}
"""
ADDRESSES = "set {} closeby node_addresses"


@pytest.fixture
def site(space: Space, tmp_path: Path) -> Iterator[Home]:
    run_ip({space.name: ["link set lo up"]})
    made = Home(space, tmp_path)
    made.write("10.244.0.1")
    yield made
    made.daemon.kill()


@pytest.mark.parametrize(
    ("wanted", "ipv6_too"),
    [
        pytest.param("198.51.100.0/24,2001:db8:1::/64", True, id="networks of both families"),
        pytest.param("198.51.100.0/24", False, id="of one family: the other answers nowhere"),
        pytest.param("all", True, id="all"),
    ],
)
def test_node_ports_follow_the_hosts_addresses(site: Home, wanted: str, ipv6_too: object) -> None:
    site.start("--nodeport-addresses", wanted)
    assert "198.51.100" not in site.space.list_text(ADDRESSES.format("ip"))

    both = ("198.51.100.7/32", "2001:db8:1::7/128 nodad")
    run_ip({site.space.name: [f"address add {address} dev lo" for address in both]})
    site.wait_listed("198.51.100.7", ADDRESSES.format("ip"))
    if ipv6_too:
        site.wait_listed("2001:db8:1::7", ADDRESSES.format("ip6"))
    assert ("2001:db8:1::7" in site.space.list_text(ADDRESSES.format("ip6"))) is ipv6_too

    run_ip({site.space.name: [f"address del {address.split()[0]} dev lo" for address in both]})
    wait_for(lambda: "198.51.100.7" not in site.space.list_text(ADDRESSES.format("ip")), "it is gone")
    wait_for(lambda: "2001:db8:1::7" not in site.space.list_text(ADDRESSES.format("ip6")), "the other is gone, too")


def test_a_file_chooses_devices_as_the_detector(site: Home, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        SMALL + "mode: nftables\ndetectLocalMode: InterfaceNamePrefix\ndetectLocal: {interfaceNamePrefix: veth}\n"
    )

    site.start("--config", str(file))

    for family in ("ip", "ip6"):
        for name in ("local_interfaces", "cluster_ip_interfaces"):
            assert 'elements = { "veth*" }' in site.space.list_text(f"set {family} closeby {name}")


def test_detect_mode_node_cidr_waits_for_the_nodes_networks(site: Home) -> None:
    site.daemon.start("--manifests", str(site.manifests), "--detect-local-mode", "NodeCIDR")
    wait_for(lambda: site.daemon.http(HEALTHZ_PORT, "/readyz")[0] == 503, "it runs and isn't ready")

    (site.manifests / "a-node.yaml").write_text(NODE + "spec: {podCIDRs: [10.244.1.0/24]}\n")
    site.daemon.await_ready()

    assert "elements = { 10.244.1.0/24 }" in site.space.list_text("set ip closeby local_pods")


@pytest.mark.parametrize(("gates", "served"), [("", True), ("AllowServiceExternalIPs=false", False)])
def test_external_ips_are_served_unless_the_gate_says_no(site: Home, gates: str, served: object) -> None:
    (site.manifests / "claiming.yaml").write_text(CLAIMING)

    site.start(*(("--feature-gates", gates) if gates else ()))

    ports = site.space.list_text("map ip closeby no_endpoint_ports")
    assert "10.96.0.77 . " in ports
    assert ("198.51.100.7 . " in ports) is served
