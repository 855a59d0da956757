"""The world itself: builds namespaces, links, routes and servers, adds and removes pods, and leaves nothing behind."""

import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from e2e.world import links, netns
from e2e.world.hosts import Host, Node, NodeSpec, Pod, PodSpec, plan_lan, plan_node, plan_outside, plan_pod
from e2e.world.place import Place
from e2e.world.processes import start_program, stop_programs, wait_ready

# No duplicate address detection: an address is of use at once. Link-local ones stay, neighbour discovery needs them.
# No limit on ICMP errors: by default six refused datagrams in a row are answered, then one a second.
EVERYWHERE = {
    "ipv6/conf/default/accept_dad": "0",
    "ipv6/conf/all/accept_dad": "0",
    "ipv6/conf/default/accept_ra": "0",
    "ipv6/conf/default/accept_redirects": "0",
    "ipv4/conf/default/accept_redirects": "0",
    "ipv4/conf/all/accept_redirects": "0",
    "ipv4/icmp_ratelimit": "0",
    "ipv6/icmp/ratelimit": "0",
}
ROUTER = {"ipv4/ip_forward": "1", "ipv6/conf/all/forwarding": "1", "ipv6/conf/default/forwarding": "1"}
# A node that forwards to another node over the link that a packet came by would tell the client to go there itself.
NODE = {
    **ROUTER,
    "ipv4/conf/all/send_redirects": "0",
    "ipv4/conf/default/send_redirects": "0",
}
_SOURCE_PORTS = 65536 - 1024


class World(Place):
    """Nodes on a LAN, a client outside, and pods that come and go."""

    def __init__(self, label: str, nodes: Sequence[NodeSpec]) -> None:
        super().__init__(label)
        self.lan = plan_lan(self.prefix + "lan")
        self.outside = plan_outside(self.prefix + "outside")
        planned = [plan_node(spec, self.prefix + spec.name, number) for number, spec in enumerate(nodes, 1)]
        self.nodes: Mapping[str, Node] = {node.host.name: node for node in planned}
        self._pods: dict[str, Pod] = {}
        self._servers: dict[str, subprocess.Popen[str]] = {}
        self._numbers: Counter[str] = Counter()  # pods so far on each node
        self._ports: Counter[str] = Counter()  # source ports so far of each host

    @property
    def pods(self) -> Mapping[str, Pod]:
        """The pods that are there now."""
        return MappingProxyType(self._pods)

    def host(self, name: str) -> Host:
        """The node, pod or outside client of that name. KeyError if there is none."""
        if name == self.outside.name:
            return self.outside
        return (self.nodes.get(name) or self._pods[name]).host

    def _build(self) -> None:
        nodes = list(self.nodes.values())
        members = [*(node.host for node in nodes), self.outside]
        self._make_namespaces([self.lan, *members])
        netns.write_sysctls(self.lan.netns, ROUTER)
        for node in nodes:
            netns.write_sysctls(node.host.netns, NODE)
        netns.run_ip({self.lan.netns: links.render_lan(self.lan, members)})
        netns.run_ip({member.netns: links.render_member(member, self.lan) for member in members})
        netns.run_ip({node.host.netns: links.render_routes_to_pods(node, nodes) for node in nodes})

    def add_pods(self, specs: Iterable[PodSpec]) -> None:
        """Build pods, all at once; returns when every server answers. KeyError for a node that isn't there."""
        pods = [self._plan_pod(spec) for spec in specs]
        self._make_namespaces([pod.host for pod in pods])
        plumbing: dict[str | None, list[str]] = {}
        for pod in pods:
            node = self.nodes[pod.node]
            plumbing.setdefault(node.host.netns, []).extend(links.render_pod_link(node, pod))
        netns.run_ip(plumbing)
        netns.run_ip({pod.host.netns: links.render_pod(self.nodes[pod.node], pod) for pod in pods})
        serving = [pod for pod in pods if pod.ports]
        for pod in serving:
            self._servers[pod.host.name] = start_program(pod.host.netns, "server", [pod.host.name, *pod.ports])
        self._pods.update((pod.host.name, pod) for pod in pods)
        for pod in serving:
            wait_ready(self._servers[pod.host.name], f"the server of pod {pod.host.name}")

    def remove_pods(self, names: Iterable[str]) -> None:
        """Kill the servers and take the namespaces and links away, as a node does with a deleted pod."""
        gone = [self._pods.pop(name) for name in names]
        stop_programs(self._servers.pop(pod.host.name) for pod in gone if pod.ports)
        netns.remove_namespaces(pod.host.netns for pod in gone)

    def stop_server(self, pod: str) -> None:
        """Kill a pod's server and leave its address: connections are refused by the pod itself."""
        stop_programs([self._servers[pod]])

    def route_outside(self, addresses: Iterable[str], node: str) -> None:
        """The outside client reaches these addresses or ranges through the node, as if it announced them."""
        via = self.nodes[node].host
        lines = [f"route replace {ip} via {via.ipv6 if ':' in ip else via.ipv4}" for ip in addresses]
        netns.run_ip({self.outside.netns: lines})

    def reserve_ports(self, host: str, number: int) -> int:
        """The first of so many source ports that the host's clients haven't used; after 60,000 they come again."""
        first = self._ports[host]
        self._ports[host] += number
        return 1024 + first % _SOURCE_PORTS

    def _take_programs(self) -> list[subprocess.Popen[str]]:
        servers = list(self._servers.values())
        self._servers.clear()
        self._pods.clear()
        return servers

    def _plan_pod(self, spec: PodSpec) -> Pod:
        if spec.name in self._pods:
            raise ValueError(f"a pod {spec.name} is there already")
        self._numbers[spec.node] += 1
        return plan_pod(spec, self.prefix + spec.name, self.nodes[spec.node], self._numbers[spec.node])

    def _make_namespaces(self, hosts: Sequence[Host]) -> None:
        netns.create_namespaces(host.netns for host in hosts)
        for host in hosts:
            netns.write_sysctls(host.netns, EVERYWHERE)
