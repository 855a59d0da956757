"""EFFECT: the LAN, and every fault that is made on it. Whatever is done to it, `heal` undoes."""

import subprocess
from collections.abc import Iterable

from e2e.lan import links
from e2e.lan.cuts import Cut, render_cuts
from e2e.lan.members import TCP_PORT, UDP_PORT, Member, make_mac, plan_cold, plan_nodes, plan_router, plan_warm
from e2e.lan.programs import PROGRAMS
from e2e.world import netns
from e2e.world.cluster import EVERYWHERE, NODE
from e2e.world.place import Place
from e2e.world.processes import start_program, wait_ready

_FIRST_PORT = 10_000
_PORTS = 100  # of one run
_STRETCHES = 500


class Lan(Place):
    """Nodes that serve the VIP, two clients and a router on a bridge. Nobody owns the VIP at first."""

    def __init__(self, label: str, nodes: int = 3) -> None:
        super().__init__(label)
        self.bridge = self.prefix + "bridge"
        self.nodes = plan_nodes(self.prefix, nodes)
        self.router = plan_router(self.prefix)
        self.warm = plan_warm(self.prefix)
        self.cold = plan_cold(self.prefix)
        self.members = (*self.nodes, self.router, self.warm, self.cold)
        self._servers: list[subprocess.Popen[str]] = []
        self._away: set[Member] = set()  # their links are taken out
        self._down: set[Member] = set()
        self._generations: dict[Member, int] = {}  # of MACs
        self._stretch = 0  # of the warm client's ports

    def cut_link(self, node: Member) -> None:
        """The node's port goes down: both ends lose the carrier."""
        netns.run_ip({self.bridge: [f"link set {node.port} down"]})
        self._down.add(node)

    def join_link(self, node: Member) -> None:
        """The port comes up again."""
        netns.run_ip({self.bridge: [f"link set {node.port} up"]})
        self._down.discard(node)

    def cut(self, cuts: Iterable[Cut]) -> None:
        """The bridge drops these from now on, and nothing else; () drops nothing. NetnsError with nft's complaint."""
        _run_nft(self.bridge, render_cuts(cuts))

    def change_mac(self, node: Member) -> None:
        """The node's link gets its next MAC and stays up, as a bond's does when its first port goes."""
        self._set_mac(node, self._generations.get(node, 0) + 1)

    def take_out(self, node: Member) -> None:
        """The node's link vanishes, with its addresses and routes."""
        netns.run_ip({self.bridge: [f"link delete {node.port}"]})
        self._away.add(node)
        self._down.discard(node)
        self._generations.pop(node, None)

    def put_in(self, node: Member) -> None:
        """The link is there again, as at first."""
        netns.run_ip({self.bridge: links.render_port(node)})
        netns.run_ip({node.netns: links.render_interface(node, self.router)})
        self._away.discard(node)

    def take_new_ports(self) -> None:
        """From now on the warm client connects from ports that it had not used.

        A node that was lost still has the connections of then. If it came to own the VIP again, one of the same ports
        would be taken for its old one, which hangs in place of breaking.
        """
        first = _FIRST_PORT + self._stretch % _STRETCHES * _PORTS
        netns.write_sysctls(self.warm.netns, {"ipv4/ip_local_port_range": f"{first} {first + _PORTS - 1}"})
        self._stretch += 1

    def heal(self) -> None:
        """Undo every fault."""
        self.cut(())
        for node in tuple(self._down):
            self.join_link(node)
        for node in tuple(self._away):
            self.put_in(node)
        for node in tuple(self._generations):
            self._set_mac(node, 0)

    def _set_mac(self, node: Member, generation: int) -> None:
        netns.run_ip({node.netns: [f"link set eth0 address {make_mac(node.number, generation)}"]})
        self._generations[node] = generation
        if generation == 0:
            del self._generations[node]

    def _take_programs(self) -> list[subprocess.Popen[str]]:
        servers, self._servers = self._servers, []
        return servers

    def _build(self) -> None:
        names = [self.bridge, *(member.netns for member in self.members)]
        netns.create_namespaces(names)
        for name in names:
            netns.write_sysctls(name, EVERYWHERE)
        for member in (*self.nodes, self.router):
            netns.write_sysctls(member.netns, NODE)
        netns.run_ip({self.bridge: links.render_bridge(self.members)})
        netns.run_ip({member.netns: links.render_member(member, self.router) for member in self.members})
        for node in self.nodes:
            _run_nft(node.netns, links.render_service(node))
            self._servers.append(start_program(node.netns, "server", [node.name, f"tcp:{TCP_PORT}"]))
            self._servers.append(start_program(node.netns, str(PROGRAMS / "echo"), [node.name, str(UDP_PORT)]))
        for server in self._servers:
            wait_ready(server, "a node's server")


def _run_nft(name: str, text: str) -> None:
    """In that namespace."""
    command = netns.command_in(name, ["nft", "-f", "-"])
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise netns.NetnsError(f"{name}: {done.stderr.strip()}")
