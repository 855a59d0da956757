"""EFFECT: the world of one run: a node for each proxy, a client pod behind it, the servers, and the API server."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import yaml

from e2e.bench.objects import stored
from e2e.bench.scale import ENDPOINTS_CIDR, NAMESPACE, TARGET_PORT, Scale
from e2e.controlplane.api import Object
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.objects import add_namespace, node, node_status
from e2e.controlplane.settings import Settings
from e2e.world.cluster import World
from e2e.world.hosts import NodeSpec, PodSpec
from e2e.world.netns import run_ip, write_sysctls
from e2e.world.processes import start_program, stop_programs, wait_ready

CLOSEBY_NODE = "closeby"
PEER_NODE = "peer"
SERVERS_NODE = "servers"
SERVICES_PATH = f"/api/v1/namespaces/{NAMESPACE}/services"
SLICES_PATH = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
PROGRAMS = Path(__file__).parent  # of the programs that run in namespaces
_RBAC = Path(__file__).parents[2] / "deploy" / "base" / "rbac.yaml"
# Closed connections leave conntrack's table after a second, so that it stays small under thousands a second.
_SYSCTLS = {"netfilter/nf_conntrack_tcp_timeout_close": "1"}


class Rig(NamedTuple):
    """What is up."""

    world: World
    plane: ControlPlane
    kubeconfigs: dict[str, Path]  # by node: each proxy's own ServiceAccount
    logs: Path


def client_pod(node_name: str) -> str:
    """The client behind a proxy's node."""
    return f"client-{node_name}"


@contextmanager
def run_rig(binary: Path, folder: Path) -> Iterator[Rig]:
    """Everything but the proxies and the Services; removed at the end, and on Ctrl-C."""
    nodes = [NodeSpec(name, "zone-a") for name in (CLOSEBY_NODE, PEER_NODE, SERVERS_NODE)]
    with ExitStack() as stack:
        world = stack.enter_context(World("bench", nodes))
        world.add_pods(PodSpec(client_pod(name), name, ports=()) for name in (CLOSEBY_NODE, PEER_NODE))
        stack.enter_context(_run_servers(world))
        settings = Settings(
            netns=world.outside.netns,
            bind_address=world.outside.ipv4,
            port=6443,
            controllers=("namespace-controller",),  # the others have nothing to do here but to use the CPU
            apiserver_flags=("--max-requests-inflight=1000", "--max-mutating-requests-inflight=1000"),
        )
        plane = stack.enter_context(ControlPlane(binary, folder, settings))
        add_namespace(plane.api, NAMESPACE)
        _add_nodes(world, plane)
        kubeconfigs = {CLOSEBY_NODE: closeby_kubeconfig(plane, folder), PEER_NODE: peer_kubeconfig(plane, folder)}
        yield Rig(world, plane, kubeconfigs, plane.logs)


def load(rig: Rig, scale: Scale, first: int, done: Callable[[int], None]) -> None:
    """Store the Services from number `first` on and their slices; `done` is told of each handful of objects.

    Straight into etcd: through the API server a Service costs 4 ms of CPU and a slice 2 (v1.36.3), minutes at 10,000.
    """
    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for count in rig.plane.store(stored(scale, first, created)):
        done(count)
    for path in (SERVICES_PATH, SLICES_PATH):  # a consistent list: the API server's cache has caught up (KEP-2340)
        rig.plane.api.request("GET", f"{path}?limit=1")


@contextmanager
def _run_servers(world: World) -> Iterator[None]:
    """One server that is every endpoint: its node takes the whole range for its own, and the others route to it."""
    host = world.nodes[SERVERS_NODE].host
    run_ip({host.netns: [f"route add local {ENDPOINTS_CIDR} dev lo"]})
    for name in (CLOSEBY_NODE, PEER_NODE):
        netns = world.nodes[name].host.netns
        run_ip({netns: [f"route add {ENDPOINTS_CIDR} via {host.ipv4}"]})
        write_sysctls(netns, _SYSCTLS)
    server = start_program(host.netns, "server", ["server", f"tcp:{TARGET_PORT}"])
    try:
        wait_ready(server, "the server")
        yield
    finally:
        stop_programs([server])


def _add_nodes(world: World, plane: ControlPlane) -> None:
    for name in (CLOSEBY_NODE, PEER_NODE):
        there = world.nodes[name]
        plane.api.apply(node(name, there.zone, pod_cidrs=there.pod_cidrs))
        plane.api.patch_status("Node", name, node_status(addresses=(there.host.ipv4, there.host.ipv6)))


def closeby_kubeconfig(plane: ControlPlane, folder: Path) -> Path:
    """Of the ServiceAccount, and with the rights, that closeby ships."""
    documents: list[Object] = [document for document in yaml.safe_load_all(_RBAC.read_text()) if document]
    for document in documents:
        plane.api.apply(document)
    token = plane.service_account_token("kube-system", "closeby")
    return plane.kubeconfig(folder / "closeby.kubeconfig", token)


def peer_kubeconfig(plane: ControlPlane, folder: Path) -> Path:
    """Of a ServiceAccount with the role that Kubernetes itself has for kube-proxy."""
    plane.api.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "kube-proxy", "namespace": "kube-system"}}
    )
    plane.api.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "bench-kube-proxy"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "system:node-proxier",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "kube-proxy", "namespace": "kube-system"}],
        }
    )
    return plane.kubeconfig(folder / "kube-proxy.kubeconfig", plane.service_account_token("kube-system", "kube-proxy"))
