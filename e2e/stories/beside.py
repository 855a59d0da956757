"""EFFECT: a client beside a cluster's nodes, on their own network, and what it sees of an address that moves."""

import ipaddress
import json
import time
from collections.abc import Callable, Iterable

from e2e.controlplane.waiting import wait_for
from e2e.demo.l2.judge import Fate, Moved, judge_moved
from e2e.kind.cluster import Cluster
from e2e.kind.docker import CommandError
from e2e.lan.measure import STREAM_INTERVAL_S, Window
from e2e.world.clients import Record, Target, Traffic
from e2e.world.hosts import Host

_NAME = "beside"
_TIMEOUT_S = 1.0
_BEFORE_S = 1.0
_FIRST_PORT, _PORTS = 1024, 60_000
_LIMIT_S = 300.0


class Beside:
    """The end of docker's bridge: it has an address among the nodes', and is their router. One host, as `Hosts` has."""

    def __init__(self, cluster: Cluster) -> None:
        """The cluster's dockerd has a network namespace of its own."""
        assert cluster.docker.netns
        self._cluster = cluster
        network = json.loads(cluster.docker.run("docker", "network", "inspect", "kind"))[0]
        configs = [one for one in network["IPAM"]["Config"] if ":" not in one["Subnet"]]
        self.subnet = ipaddress.IPv4Network(configs[0]["Subnet"])
        self._host = Host(_NAME, cluster.docker.netns, configs[0]["Gateway"], "")
        self._ports = 0

    def host(self, name: str) -> Host:
        """As Hosts."""
        assert name == _NAME
        return self._host

    def reserve_ports(self, host: str, number: int) -> int:
        """As Hosts; after 60,000 they come again."""
        assert host == _NAME
        first, self._ports = self._ports, self._ports + number
        return _FIRST_PORT + first % _PORTS

    def pool(self, count: int) -> str:
        """The last addresses but one of the subnet, which dockerd gives out last of all."""
        last = int(self.subnet.broadcast_address) - 1
        return f"{ipaddress.IPv4Address(last - count)}-{ipaddress.IPv4Address(last - 1)}"

    def get(self, url: str) -> str:
        """What curl prints; CommandError without an answer."""
        return self._cluster.docker.run("curl", "--silent", "--show-error", "--max-time", "10", url)

    def owner(self, vip: str) -> str:
        """The node that announces it, as the control plane's announcer knows it; waits for one."""
        refused = ""

        def look() -> str:
            nonlocal refused
            pods = ("get", "pods", "--selector=app.kubernetes.io/component=announcer", "-o", "json")
            for pod in json.loads(self._cluster.kubectl("--namespace=kube-system", *pods))["items"]:
                ends = "deletionTimestamp" in pod["metadata"]
                if pod["spec"].get("nodeName") == self._cluster.control_plane and not ends:
                    ask = ("exec", pod["metadata"]["name"], "--", "closeby", "who-announces", "-o", "json")
                    try:
                        said = json.loads(self._cluster.kubectl("--namespace=kube-system", *ask))
                    except CommandError as error:  # it began to end, or isn't ready to answer yet
                        refused = str(error)
                        continue
                    return next((str(one["owner"]) for one in said["vips"] if one["vip"] == vip), "")
            return ""

        try:
            return wait_for(look, f"a node announces {vip}", timeout_s=_LIMIT_S)
        except TimeoutError as error:
            error.add_note(refused)
            raise

    def watch(self, vip: str, fate: Fate, act: Callable[[str], object], after_s: float) -> Moved:
        """What the client sees while `act` is done, with the owner's name; it asks a hundred times a second."""
        before = self.owner(vip)
        with Traffic(self, {_NAME: [Target("udp", vip, 80, timeout_s=_TIMEOUT_S)]}, STREAM_INTERVAL_S) as traffic:
            time.sleep(_BEFORE_S)
            began = time.monotonic()
            act(before)
            time.sleep(after_s)
            ended = time.monotonic() - _TIMEOUT_S
            records = [record for record in traffic.stop()[_NAME] if record.began <= ended]
        window = Window(began, max(record.began + record.took_s for record in records))
        return judge_moved(fate, (before, self.owner(vip)), records, window, nodes_of(records))


def nodes_of(records: Iterable[Record]) -> dict[str, str]:
    """The node of each server, which calls itself pod@node. Pure."""
    return {record.name: record.name.partition("@")[2] for record in records if record.name}
