"""EFFECT: one API server and two like places, each with a proxy: closeby in one, kube-proxy in the other.

The places have the same addresses, each on a LAN of its own; both proxies are of the same node. The API server has a
namespace with a link to either node.
"""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from e2e.bench.rig import closeby_kubeconfig, peer_kubeconfig
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.objects import add_namespace, node, node_status
from e2e.controlplane.processes import Component
from e2e.controlplane.settings import Settings
from e2e.differential.clients import Clients, run_server
from e2e.differential.places import (
    CLIENTS_NODE,
    LOCAL_PODS,
    LOCAL_RANGES,
    NAMESPACE,
    NODE,
    REMOTE_POD,
    REMOTE_RANGES,
    SERVER_POD,
    SERVERS_NODE,
    SERVICE_RANGES,
    VIP_RANGES,
    ZONES,
)
from e2e.differential.proxies import PROXIES, run_proxy
from e2e.world.cluster import World
from e2e.world.hosts import NodeSpec, PodSpec
from e2e.world.netns import create_namespaces, remove_namespaces, run_in, run_ip, unique_prefix, write_sysctls
from e2e.world.processes import stop_programs

_API_IP = "198.18.255.1"
# No limit on ICMP errors, which both proxies refuse with; and flows are forgotten soon, since ports come again.
_LIFTED = {"ipv4/icmp_ratemask": "0", "ipv4/icmp_msgs_per_sec": "1000000", "ipv4/icmp_msgs_burst": "100000"}
_PINGS = {"ipv4/ping_group_range": "0 0"}  # ICMP sockets for root
_ONE_SECOND = (
    "syn_recv",
    "fin_wait",
    "close_wait",
    "last_ack",
    "time_wait",
    "close",
    "unacknowledged",
)
# Longer than a client waits: an answer to a forgotten flow would never be translated back, and the second SYN of a
# connection whose first was lost would begin another flow, to an endpoint chosen anew.
_AWAITED = ("tcp_timeout_syn_sent", "tcp_timeout_max_retrans", "udp_timeout", "udp_timeout_stream")
_SHORT = {
    **{f"netfilter/nf_conntrack_tcp_timeout_{state}": "1" for state in _ONE_SECOND},
    **{f"netfilter/nf_conntrack_{key}": "10" for key in _AWAITED},
}


class Side(NamedTuple):
    """One of the two places, with its clients."""

    name: str  # of its proxy
    proxy: Component
    netns: str  # of the node
    clients: Clients


class Rig(NamedTuple):
    """What is up."""

    plane: ControlPlane
    sides: tuple[Side, Side]  # closeby's, kube-proxy's


@contextmanager
def run_rig(binary: Path, folder: Path) -> Iterator[Rig]:
    """All of it, with both proxies running on an empty API; removed at the end, and on Ctrl-C."""
    with ExitStack() as stack:
        worlds = [stack.enter_context(_place(number)) for number in range(len(PROXIES))]
        netns = stack.enter_context(_plane_namespace([world.nodes[NODE].host.netns for world in worlds]))
        settings = Settings(netns=netns, bind_address=_API_IP, port=6443, controllers=("namespace-controller",))
        data = stack.enter_context(tempfile.TemporaryDirectory(prefix="plane-", dir=folder))  # none of an earlier run
        plane = stack.enter_context(ControlPlane(binary, Path(data), settings))
        add_namespace(plane.api, NAMESPACE)
        there = worlds[0].nodes[NODE]
        plane.api.apply(node(NODE, ZONES[0], pod_cidrs=there.pod_cidrs))
        plane.api.patch_status("Node", NODE, node_status(addresses=(there.host.ipv4, there.host.ipv6)))
        kubeconfigs = (closeby_kubeconfig(plane, folder), peer_kubeconfig(plane, folder))
        sides = []
        for name, world, kubeconfig in zip(PROXIES, worlds, kubeconfigs, strict=True):
            where = world.nodes[NODE].host.netns
            proxy = stack.enter_context(run_proxy(name, where, kubeconfig, folder / name, binary))
            sides.append(Side(name, proxy, where, stack.enter_context(Clients(world))))
        yield Rig(plane, (sides[0], sides[1]))


@contextmanager
def _place(number: int) -> Iterator[World]:
    """The world of one proxy, with servers on every address that can be an endpoint."""
    nodes = [NodeSpec(name, ZONES[0]) for name in (NODE, CLIENTS_NODE, SERVERS_NODE)]
    with ExitStack() as stack:
        world = stack.enter_context(World(f"differential{number}", nodes))
        pods = [PodSpec(name, NODE, ()) for name in (*LOCAL_PODS, SERVER_POD)]
        world.add_pods([*pods, PodSpec(REMOTE_POD, CLIENTS_NODE, ())])
        _add_routes(world)
        hosts = [world.host(name) for name in (*LOCAL_PODS, SERVER_POD, NODE, CLIENTS_NODE, SERVERS_NODE, REMOTE_POD)]
        for host in (*hosts, world.outside):
            run_in(host.netns, _lift_limits)
            write_sysctls(host.netns, _PINGS)
        for name in (NODE, CLIENTS_NODE):
            write_sysctls(world.host(name).netns, _SHORT)
        servers = [run_server(world.host(name).netns) for name in (*LOCAL_PODS, SERVER_POD, NODE, SERVERS_NODE)]
        stack.callback(stop_programs, servers)
        yield world


def _add_routes(world: World) -> None:
    """Service addresses lead to the proxy's node, and so do all answers of the servers elsewhere, as DNAT needs it."""
    proxy, servers = world.nodes[NODE].host, world.nodes[SERVERS_NODE].host
    pod = world.pods[SERVER_POD]
    vias = (proxy.ipv4, proxy.ipv6)
    to_services = [
        f"route add {cidr} via {via}"
        for pair in (SERVICE_RANGES, VIP_RANGES)
        for cidr, via in zip(pair, vias, strict=True)
    ]
    pod_vias = zip(LOCAL_RANGES, (pod.host.ipv4, pod.host.ipv6), strict=True)
    clients_cidrs = world.nodes[CLIENTS_NODE].pod_cidrs
    run_ip(
        {
            proxy.netns: [f"route add {cidr} via {via} dev pod-{pod.number}" for cidr, via in pod_vias],
            pod.host.netns: [f"route add local {cidr} dev lo" for cidr in LOCAL_RANGES],
            servers.netns: [
                *(f"route add local {cidr} dev lo" for cidr in REMOTE_RANGES),
                *(f"route replace {cidr} via {via}" for cidr, via in zip(clients_cidrs, vias, strict=True)),
            ],
            world.nodes[CLIENTS_NODE].host.netns: to_services,
            world.outside.netns: to_services,
        }
    )


def _lift_limits() -> None:
    """In the caller's namespace; older kernels have some of the limits for all namespaces together."""
    for key, value in _LIFTED.items():
        path = Path("/proc/sys/net") / key
        if path.exists():
            path.write_text(value)


@contextmanager
def _plane_namespace(nodes: list[str]) -> Iterator[str]:
    """A namespace for the API server, reached from each of the nodes."""
    name = unique_prefix("differential") + "plane"
    create_namespaces([name])
    try:
        lines = ["link set lo up", f"address add {_API_IP}/32 dev lo"]
        for number, netns in enumerate(nodes, 1):
            lines += [
                f"link add node-{number} type veth peer name plane netns {netns}",
                f"address add 198.18.{number}.1/24 dev node-{number}",
                f"link set node-{number} up",
            ]
        run_ip({name: lines})
        run_ip(
            {
                netns: [
                    f"address add 198.18.{number}.2/24 dev plane",
                    "link set plane up",
                    f"route add {_API_IP} via 198.18.{number}.1",
                ]
                for number, netns in enumerate(nodes, 1)
            }
        )
        yield name
    finally:
        remove_namespaces([name])
