"""EFFECT: one node that moves, one that stays, the API server, and both proxies for the first."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

import yaml

from e2e.cluster.daemon import Daemon, Ended, Site
from e2e.controlplane.api import Object
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.netns import connect_in
from e2e.controlplane.objects import add_namespace, node, node_status
from e2e.controlplane.processes import Component
from e2e.controlplane.settings import Settings
from e2e.controlplane.waiting import wait_for
from e2e.migration.load import Load
from e2e.world.clients import Target
from e2e.world.cluster import World
from e2e.world.hosts import CLUSTER_CIDRS, NodeSpec, PodSpec
from e2e.world.netns import write_sysctls
from endpointslice.types import Family

NODE = "moving"
_OTHER = "staying"
_CLIENT = "client"
_SERVERS = {"here": NODE, "there": _OTHER}  # by their nodes
_NAMESPACE = "shop"
_RBAC = Path(__file__).parents[2] / "deploy" / "base" / "rbac.yaml"
_PEER_HEALTH, _PEER_METRICS = 10266, 10259  # not closeby's: both run for a while
# An order with a gap leaves connections in conntrack that nobody translated. closeby deletes them when it makes its
# tables, kube-proxy doesn't: for two minutes, by default, a later client on the same source port would meet them.
_SYSCTLS = {"netfilter/nf_conntrack_tcp_timeout_syn_sent": "2"}
_SYNCED = "kubeproxy_sync_proxy_rules_last_timestamp_seconds"


class Mode(StrEnum):
    """kube-proxy's."""

    NFTABLES = "nftables"
    IPTABLES = "iptables"


class Addresses(NamedTuple):
    """Where the Services answer."""

    cluster_ip: str
    cluster_ip_v6: str
    dns: str
    node_port: int
    local_node_port: int


class Rig:
    """What is up. `peer` is kube-proxy while it runs."""

    def __init__(self, world: World, plane: ControlPlane, binary: Path, folder: Path) -> None:
        self.world = world
        self._plane = plane
        self._binary = binary
        self._folder = folder
        self.netns = world.nodes[NODE].host.netns
        write_sysctls(self.netns, _SYSCTLS)
        self._set_up_api()
        self._addresses = self._add_services()
        self.closeby = Daemon(Site(NODE, self.netns, folder), "--kubeconfig", str(folder / "closeby.kubeconfig"))
        self._peer: Component | None = None

    def close(self) -> None:
        """End the proxies."""
        self.closeby.kill()
        self.stop_peer()

    def start_peer(self, mode: Mode) -> None:
        """kube-proxy runs, and has synced once."""
        self._peer = Component("kube-proxy", self._peer_command(mode), self._plane.logs, self.netns)
        wait_for(self._peer_synced, f"kube-proxy has synced in mode {mode}", timeout_s=60)

    def stop_peer(self) -> None:
        """It ends, and leaves its rules, as always."""
        if self._peer:
            self._peer.stop()
            self._peer = None

    def start_closeby(self) -> None:
        """It runs, and has synced once."""
        self.closeby.start()
        self.closeby.await_ready()

    def clean_up_peer(self) -> Ended:
        """`closeby cleanup --kube-proxy` on the node."""
        return _good(self.closeby.run("cleanup", "--kube-proxy"))

    def clean_up_closeby(self) -> Ended:
        """`closeby cleanup` on the node."""
        return _good(self.closeby.command("cleanup"))

    def load(self) -> Load:
        """100 new connections and exchanges a second, and lasting ones, of a pod, the host and the outside."""
        at, host = self._addresses, self.world.nodes[NODE].host
        web, web_v6, dns = (
            Target("tcp", at.cluster_ip, 80),
            Target("tcp", at.cluster_ip_v6, 80),
            Target("udp", at.dns, 53),
        )
        port, local = Target("tcp", host.ipv4, at.node_port), Target("tcp", host.ipv4, at.local_node_port)
        outside = self.world.outside.name
        return Load(
            self.world,
            {_CLIENT: [web, dns], NODE: [web], outside: [port, local]},
            {
                _CLIENT: [web._replace(tries=8), web_v6._replace(tries=4), dns._replace(tries=4)],
                NODE: [web._replace(tries=4)],
                outside: [port._replace(tries=4), local._replace(tries=4)],
            },
        )

    def _peer_synced(self) -> bool:
        assert self._peer
        self._peer.check()
        connection = HTTPConnection("127.0.0.1", _PEER_METRICS)
        try:
            connection.sock = connect_in(self.netns, ("127.0.0.1", _PEER_METRICS), 5.0)
            connection.request("GET", "/metrics")
            lines = connection.getresponse().read().decode().splitlines()
        except OSError:
            return False
        finally:
            connection.close()
        values = [float(line.split()[-1]) for line in lines if line.startswith(_SYNCED)]
        return len(values) == len(Family) and all(values)

    def _peer_command(self, mode: Mode) -> list[str]:
        untouched = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
        config = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": str(mode),
            "hostnameOverride": NODE,
            "clientConnection": {"kubeconfig": str(self._folder / "kube-proxy.kubeconfig")},
            "clusterCIDR": ",".join(CLUSTER_CIDRS),
            "detectLocalMode": "ClusterCIDR",
            "healthzBindAddress": f"127.0.0.1:{_PEER_HEALTH}",
            "metricsBindAddress": f"127.0.0.1:{_PEER_METRICS}",
            "conntrack": untouched,
        }
        path = self._folder / f"kube-proxy-{mode}.json"
        path.write_text(json.dumps(config, indent=1))
        return [str(self._binary), "kube-proxy", f"--config={path}"]

    def _set_up_api(self) -> None:
        plane = self._plane
        add_namespace(plane.api, _NAMESPACE)
        for name, there in self.world.nodes.items():
            plane.api.apply(node(name, there.zone, pod_cidrs=there.pod_cidrs))
            plane.api.patch_status("Node", name, node_status(addresses=(there.host.ipv4, there.host.ipv6)))
        documents: list[Object] = [one for one in yaml.safe_load_all(_RBAC.read_text()) if one]
        for document in [*documents, *_PEER_ACCOUNT]:
            plane.api.apply(document)
        for name in ("closeby", "kube-proxy"):
            plane.kubeconfig(self._folder / f"{name}.kubeconfig", plane.service_account_token("kube-system", name))

    def _add_services(self) -> Addresses:
        pods = self.world.pods
        servers = [(pods[name].host.ipv4, pods[name].host.ipv6, where) for name, where in _SERVERS.items()]
        web = self._add_service("web", {"type": "NodePort"}, ("TCP", 80), servers)
        dns = self._add_service("dns", {}, ("UDP", 53), servers)
        local = self._add_service("local", {"type": "NodePort", "externalTrafficPolicy": "Local"}, ("TCP", 81), servers)
        return Addresses(
            cluster_ip=web["clusterIPs"][0],
            cluster_ip_v6=web["clusterIPs"][1],
            dns=dns["clusterIP"],
            node_port=web["ports"][0]["nodePort"],
            local_node_port=local["ports"][0]["nodePort"],
        )

    def _add_service(
        self, name: str, spec: Object, port: tuple[str, int], servers: Sequence[tuple[str, str, str]]
    ) -> Object:
        """A Service without selector, its slices written by hand; its spec as stored."""
        protocol, number = port
        meta = {"name": name, "namespace": _NAMESPACE}
        stored = self._plane.api.apply(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": meta,
                "spec": {
                    "ipFamilyPolicy": "PreferDualStack",
                    "ports": [{"name": "main", "protocol": protocol, "port": number, "targetPort": 8080}],
                    **spec,
                },
            }
        )
        for at, family in enumerate(("IPv4", "IPv6")):
            self._plane.api.apply(
                {
                    "apiVersion": "discovery.k8s.io/v1",
                    "kind": "EndpointSlice",
                    "metadata": {
                        **meta,
                        "name": f"{name}-{family.lower()}",
                        "labels": {"kubernetes.io/service-name": name},
                    },
                    "addressType": family,
                    "ports": [{"name": "main", "protocol": protocol, "port": 8080}],
                    "endpoints": [{"addresses": [one[at]], "nodeName": one[2]} for one in servers],
                }
            )
        return dict(stored["spec"])


_PEER_ACCOUNT: tuple[Object, ...] = (
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "kube-proxy", "namespace": "kube-system"}},
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "kube-proxy"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-proxier"},
        "subjects": [{"kind": "ServiceAccount", "name": "kube-proxy", "namespace": "kube-system"}],
    },
)


@contextmanager
def run_rig(binary: Path, folder: Path) -> Iterator[Rig]:
    """Everything, without a running proxy; removed at the end."""
    with ExitStack() as stack:
        world = stack.enter_context(World("move", [NodeSpec(NODE, "a"), NodeSpec(_OTHER, "b")]))
        world.add_pods([PodSpec(_CLIENT, NODE, ()), *(PodSpec(name, where) for name, where in _SERVERS.items())])
        settings = Settings(
            netns=world.lan.netns, bind_address=world.lan.ipv4, port=6443, controllers=("namespace-controller",)
        )
        plane = stack.enter_context(ControlPlane(binary, folder / "plane", settings))
        rig = Rig(world, plane, binary, folder)
        stack.callback(rig.close)
        yield rig


def _good(ended: Ended) -> Ended:
    if ended.code != 0:
        raise RuntimeError(f"the cleanup ended with {ended.code}: {ended.error}")
    return ended
