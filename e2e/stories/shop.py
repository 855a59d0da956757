"""EFFECT: a cluster whose life is told: servers on its workers, two Services, and clients that go on asking them.

`web` has servers on every worker. `near` has servers on the first worker alone: what happens to another node is none of
its business.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from rich.console import Console

from deploy.image.build import version
from e2e.kind.cluster import Cluster
from e2e.kind.config import Proxy
from e2e.kind.daemon import folder
from e2e.kind.docker import CommandError
from e2e.kind.install import build_image
from e2e.kind.life import Ask, bring_down, bring_up, find_cluster, keep_logs
from e2e.kind.steps import Steps, steps_on
from e2e.migration.load import Flow, Load
from e2e.stories.clients import PodClients
from e2e.stories.noticed import Lasted, Noticed, last, notice
from e2e.stories.servers import PROGRAMS, render_programs, render_service, render_workload
from e2e.world.clients import Record, Target
from e2e.world.signals import exit_on_signals

IMAGE = f"closeby:{version()}"
SYSTEM = "--namespace=kube-system"
_EVERY_S = 0.25
_AROUND_S = 1.0  # what goes wrong may show a moment later
_FLOWS = 1  # of each client to each target
_TIMEOUT_S = 5.0  # a SYN that is lost is sent again after a second, and after three
_SILENT_S = 10.0  # on a busy machine an answer takes seconds; what is lost never comes
_LONG = "--timeout=300s"
WEB, NEAR = "web", "near"
_SERVERS = {WEB: 4, NEAR: 2}
LABELS = {Proxy.CLOSEBY: "app.kubernetes.io/name=closeby", Proxy.KUBE_PROXY: "k8s-app=kube-proxy"}
_ROLL = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}


class Frontend(NamedTuple):
    """Where a Service answers."""

    ipv4: str
    ipv6: str
    node_ports: Mapping[str, int]  # by protocol


class Groups(NamedTuple):
    """What clients saw: attempts by the group of their target, and lasting flows by who answers them."""

    records: Mapping[str, Sequence[Record]]  # in the order of their beginning
    flows: Sequence[Flow]

    def new(self, event_s: float) -> dict[str, Noticed]:
        """The attempts of each group, summed."""
        return {group: notice(records, event_s) for group, records in self.records.items()}

    def lasting(self, group_of: Callable[[str], str]) -> dict[str, Lasted]:
        """The flows, by what their server's name ("pod@node") is called."""
        groups: dict[str, list[Flow]] = {}
        for flow in self.flows:
            groups.setdefault(group_of(flow.name), []).append(flow)
        return {group: last(flows) for group, flows in sorted(groups.items())}


class Shop:
    """A cluster with its servers. Workers are in the order of their names."""

    def __init__(self, cluster: Cluster, proxy: Proxy, steps: Steps) -> None:
        self.cluster = cluster
        self.proxy = proxy
        self.steps = steps
        nodes = cluster.nodes()
        self.nodes = {node.name: node for node in nodes}
        self.workers = [node.name for node in nodes if node.name != cluster.control_plane]

    def open(self) -> None:
        """Returns once every server of both Services is ready."""
        here = {"nodeSelector": {"kubernetes.io/hostname": self.workers[0]}}
        spread = {"topologySpreadConstraints": [_spread(WEB)]}
        objects = [render_programs()]
        for name, pod in ((WEB, spread), (NEAR, here)):
            spec = {"replicas": _SERVERS[name], "strategy": _ROLL}
            objects.append(render_workload("Deployment", name, IMAGE, spec, pod))
            objects.append(render_service(name, {"type": "NodePort"}))
        self.apply(*objects)
        for name in _SERVERS:
            self.cluster.kubectl("rollout", "status", f"deployment/{name}", _LONG)

    def close(self) -> None:
        """Remove what `open` made, from a cluster that goes on."""
        workloads = [f"{kind}/{name}" for name in _SERVERS for kind in ("deployment", "service")]
        self.cluster.kubectl("delete", "--ignore-not-found", *workloads, f"configmap/{PROGRAMS}")

    def apply(self, *objects: Mapping[str, object]) -> None:
        """Apply them, as JSON. CommandError."""
        listed = {"apiVersion": "v1", "kind": "List", "items": objects}
        self.cluster.kubectl("apply", "-f", "-", text=json.dumps(listed))

    def frontend(self, name: str) -> Frontend:
        """Of the Service."""
        spec = json.loads(self.cluster.kubectl("get", "service", name, "-o", "json"))["spec"]
        ports = {port["protocol"].lower(): port["nodePort"] for port in spec["ports"] if "nodePort" in port}
        ipv4, ipv6 = spec["clusterIPs"]
        return Frontend(ipv4, ipv6, ports)

    def pods(self, selector: str, *options: str) -> list[dict[str, Any]]:
        """As the API has them."""
        found = self.cluster.kubectl("get", "pods", f"--selector={selector}", *options, "-o", "json")
        return list(json.loads(found)["items"])

    def proxy_pods(self, *options: str) -> list[dict[str, Any]]:
        """The proxy's."""
        return self.pods(LABELS[self.proxy], SYSTEM, *options)

    def kill_container(self, pod: Mapping[str, Any]) -> None:
        """Kill the pod's program; the kubelet restarts it in place. It needs no API server."""
        node, uid = pod["spec"]["nodeName"], pod["metadata"]["uid"]
        container = self.cluster.on(node, "crictl", "ps", "--quiet", f"--label=io.kubernetes.pod.uid={uid}").split()[0]
        pid = json.loads(self.cluster.on(node, "crictl", "inspect", container))["info"]["pid"]
        self.cluster.on(node, "kill", "-KILL", str(pid))

    def clients(self, nodes: Iterable[str]) -> PodClients:
        """A client on each of these nodes; a context manager."""
        return PodClients(self.cluster, nodes, image=IMAGE)

    @contextmanager
    def asked(
        self, clients: PodClients, groups: Mapping[str, Sequence[Target]], lasting: Sequence[str] = (WEB, NEAR)
    ) -> Iterator["Asking"]:
        """Every client asks every target four times a second, and keeps flows to the lasting Services, in the block."""
        asking = Asking(self, clients, groups, lasting)
        with asking.load:
            time.sleep(_AROUND_S)
            yield asking

    def everything(self, nodes: Sequence[str]) -> list[Target]:
        """Both Services at every kind of address, NodePorts at these nodes."""
        targets = []
        for name in _SERVERS:
            front = self.frontend(name)
            targets += cluster_ip_targets(front)
            for node in nodes:
                targets += node_port_targets(front, self.nodes[node].addresses)
        return targets


class Asking:
    """Clients at work."""

    def __init__(
        self, shop: Shop, clients: PodClients, groups: Mapping[str, Sequence[Target]], lasting: Sequence[str]
    ) -> None:
        self._group_of = [group for group, of_group in groups.items() for _ in of_group]
        new = [target for of_group in groups.values() for target in of_group]
        flows = [target for name in lasting for target in cluster_ip_targets(shop.frontend(name))]
        self.load = Load(
            clients,
            dict.fromkeys(clients.names, new),
            {name: [target._replace(tries=_FLOWS, timeout_s=_SILENT_S) for target in flows] for name in clients.names},
            _EVERY_S,
        )

    def end(self) -> Groups:
        """What they saw, from a second before the block to a second after this call."""
        time.sleep(_AROUND_S)
        records, flows = self.load.end()
        grouped: dict[str, list[Record]] = {group: [] for group in self._group_of}
        for record in sorted((one for of_host in records.values() for one in of_host), key=lambda one: one.began):
            grouped[self._group_of[record.target]].append(record)
        return Groups(grouped, [flow for of_host in flows.values() for flow in of_host])


def restarts(pod: Mapping[str, Any]) -> int:
    """How often its containers were restarted in place. Pure."""
    return sum(status["restartCount"] for status in pod["status"].get("containerStatuses", ()))


def are_back(pods: Iterable[Mapping[str, Any]], before: Mapping[str, int]) -> bool:
    """Whether every pod was restarted since, by its uid, and is ready. Pure."""
    return all(
        restarts(pod) > before.get(pod["metadata"]["uid"], -1)
        and all(status["ready"] for status in pod["status"].get("containerStatuses", ()))
        for pod in pods
    )


def cluster_ip_targets(front: Frontend) -> list[Target]:
    """TCP and UDP, IPv4 and IPv6."""
    return [
        Target(protocol, ip, 80, timeout_s=_TIMEOUT_S) for protocol in ("tcp", "udp") for ip in (front.ipv4, front.ipv6)
    ]


def node_port_targets(front: Frontend, addresses: Iterable[str]) -> list[Target]:
    """TCP and UDP at each of a node's addresses."""
    return [
        Target(protocol, ip, port, timeout_s=_TIMEOUT_S)
        for ip in addresses
        for protocol, port in front.node_ports.items()
    ]


@contextmanager
def open_shop(name: str, proxy: Proxy, console: Console, workers: int = 2) -> Iterator[Shop]:
    """A cluster of its own with that proxy, and its shop open; removed at the end, whatever happens."""
    steps = steps_on(console)
    with exit_on_signals():
        cluster = None
        try:
            cluster = bring_up(Ask(name, workers, proxy), console)
            if proxy is not Proxy.CLOSEBY:  # who installs closeby loads its image
                with steps("closeby's image, for servers and clients"):
                    cluster.load(build_image())
            shop = Shop(cluster, proxy, steps)
            with steps("servers are ready"):
                shop.open()
            yield shop
        except (CommandError, TimeoutError):
            if cluster:  # else it has kept them
                keep_logs(cluster, folder() / "logs" / name, console)
            raise
        finally:
            bring_down(name, console)


@contextmanager
def open_shop_on(name: str, proxy: Proxy, console: Console) -> Iterator[Shop]:
    """The shop on a cluster that runs, with closeby's image on its nodes; the cluster stays."""
    with exit_on_signals():
        shop = Shop(find_cluster(name, console), proxy, steps_on(console))
        shop.open()
        try:
            yield shop
        finally:
            shop.close()


def _spread(name: str) -> dict[str, object]:
    """As many servers on each worker."""
    return {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "nodeTaintsPolicy": "Honor",
        "labelSelector": {"matchLabels": {"app": name}},
    }
