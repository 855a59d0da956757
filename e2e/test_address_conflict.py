"""As an owner of a Service I read in its status that a printer on the LAN has its address, and when that has ended."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from e2e.addresses import ROOT, ControllerProcess, Shop, install
from e2e.announcers import FEED, AnnouncerProcess
from e2e.cluster.cluster import NAMES, Cluster
from e2e.cluster.space import Space
from e2e.controlplane.api import Object
from e2e.controlplane.waiting import wait_for
from e2e.world.hosts import Host
from e2e.world.netns import command_in, run_ip
from proxy.announcer.status import VipStatus

pytestmark = pytest.mark.e2e

VIP = "172.30.0.240"  # of the nodes' own subnet
CONFLICT = "closeby.dev/AddressConflict"
PATIENCE_S = 90.0


class Lan:
    """A controller, and a proxy and an announcer on every node."""

    def __init__(self, cluster: Cluster, shop: Shop, announcers: dict[str, AnnouncerProcess]) -> None:
        self.shop = shop
        self.printer = cluster.world.outside
        self._cluster = cluster
        self._announcers = announcers

    def known(self) -> list[VipStatus]:
        """What each announcer says of the address; nothing until all know it."""
        said = [status for one in self._announcers.values() if (status := one.status()) is not None]
        found = [vip for status in said for vip in status.vips if vip.vip == VIP]
        return found if len(found) == len(NAMES) else []

    def owner(self) -> str:
        """The node that all take for the owner; "" while it's nobody, or they differ."""
        owners = {vip.owner for vip in self.known()}
        return owners.pop() if len(owners) == 1 else ""

    def who_announces(self, node: str) -> str:
        """The command on that node: what it prints."""
        control = str(self._announcers[node].control)
        ended = self._cluster.daemons[node].run("who-announces", VIP, "--announcer-control", control)
        assert ended.code == 0, ended.error
        return " ".join(ended.output.split())

    def told(self) -> list[tuple[str, list[Object], list[Object]]]:
        """Node, addresses and conflicts of each ServiceL2Status of the story."""
        path = f"/apis/closeby.dev/v1beta1/namespaces/{self.shop.name}/servicel2statuses"
        found = [one["status"] for one in self.shop.api.request("GET", path)["items"]]
        return [(status["node"], status["addresses"], status["conflicts"]) for status in found]

    def condition(self, name: str) -> tuple[str, str, str]:
        """Status, reason and message of the Service's condition; empty texts where it has none."""
        status = self.shop.api.get("Service", f"{self.shop.name}/{name}")["status"]
        found = [one for one in status.get("conditions", ()) if one["type"] == CONFLICT]
        return (found[0]["status"], found[0]["reason"], found[0]["message"]) if found else ("", "", "")


@contextmanager
def has_address(host: Host, ip: str) -> Iterator[str]:
    """The host has it meanwhile, so that its kernel answers ARP for it; its MAC."""
    run_ip({host.netns: [f"address add {ip}/32 dev eth0"]})
    try:
        shown = subprocess.run(
            command_in(host.netns, ["ip", "-json", "link", "show", "eth0"]), check=True, capture_output=True, text=True
        )
        yield json.loads(shown.stdout)[0]["address"]
    finally:
        run_ip({host.netns: [f"address del {ip}/32 dev eth0"]})


def install_all(cluster: Cluster) -> ControllerProcess:
    """Definitions and rights of deploy/, and a controller that leads."""
    rights = (f"components/announcer/{part}-rbac" for part in ("pools", "status"))
    for part in ("crds/closeby/servicel2statuses", *rights):
        cluster.plane.kubectl("apply", "--validate=strict", "-f", str(ROOT / "deploy" / f"{part}.yaml"))
    cluster.plane.kubectl("wait", "--for=condition=Established", "crd/servicel2statuses.closeby.dev", "--timeout=60s")
    kubeconfig = install(cluster.plane, cluster.folder)
    return ControllerProcess("conflict", kubeconfig, cluster.folder, netns=cluster.world.lan.netns)


def start_announcers(cluster: Cluster, closing: ExitStack) -> dict[str, AnnouncerProcess]:
    """One on every node, with proxies that tell them of addresses; in the end the nodes are as they were."""
    announcers = {}
    for name, daemon in cluster.daemons.items():
        closing.callback(daemon.start)
        closing.callback(daemon.kill)
        daemon.stop()
        daemon.start(flags=["--announcer-socket", str(daemon.site.folder / FEED)])
        flags = ("--profile", "calm", "--metrics-bind-address", "")
        announcers[name] = AnnouncerProcess(name, daemon.site.netns, daemon.site.folder, *flags)
        closing.callback(announcers[name].kill)
    for daemon in cluster.daemons.values():
        daemon.await_ready()
    wait_for(lambda: all(one.is_ready() for one in announcers.values()), "announcers run on all nodes")
    return announcers


@pytest.fixture
def lan(cluster: Cluster, space: Space) -> Iterator[Lan]:
    controller = install_all(cluster)
    shop = Shop(cluster.api, space.name)
    with ExitStack() as closing:
        closing.callback(controller.kill)
        announcers = start_announcers(cluster, closing)
        wait_for(controller.leads, "the controller leads")
        yield Lan(cluster, shop, announcers)
        shop.close()
        assert controller.terminate() == 0
    assert "Traceback" not in controller.log()


def test_a_printer_that_has_a_services_address_stands_in_its_status_until_it_leaves(lan: Lan, space: Space) -> None:
    shop = lan.shop
    shop.pool("one", f"{VIP}/32")
    shop.advertise("one")
    space.add_pods("web", ["north-1"])
    with has_address(lan.printer, VIP) as mac:
        space.add_service("web", type="LoadBalancer", ipFamilyPolicy="SingleStack")
        shop.await_ips("web", VIP)

        wait_for(lambda: lan.condition("web")[0] == "True", "a condition says so", timeout_s=PATIENCE_S)

        said = f"{VIP}: {mac}, which is no node's, answers for it"
        assert lan.condition("web") == ("True", "ForeignHost", said)
        assert shop.granted("web")[0] == "True"
        stranger = {"ip": VIP, "mac": mac, "interface": "eth0"}
        wait_for(lambda: [one[1:] for one in lan.told()] == [([], [stranger])], "one node has told of it")
        wait_for(lambda: {vip.foreign for vip in lan.known()} == {mac}, "all announcers have met it")
        known = wait_for(lan.known, "all announcers answer")
        assert [(vip.owner, vip.mine) for vip in known] == [("", "none")] * len(NAMES), "nobody takes it"
        assert all(f"{said}, so nobody takes it" in lan.who_announces(name) for name in NAMES)

    owner = wait_for(lan.owner, "a node takes it", timeout_s=PATIENCE_S)
    wait_for(lambda: lan.condition("web") == ("", "", ""), "the condition is gone", timeout_s=PATIENCE_S)
    held = [{"ip": VIP, "interface": "eth0"}]
    wait_for(lambda: lan.told() == [(owner, held, [])], "its node alone tells of it", timeout_s=PATIENCE_S)
    assert shop.granted("web")[0] == "True"
