"""Clients of addresses that several nodes share: each keeps an entry, as kernels do, and asks when it has none."""

from collections.abc import Iterable

from endpointslice.types import IP
from proxy.l2.actions import Tell
from proxy.l2.events import ArpKind, ArpSeen
from proxy.l2.types import Key
from tests.l2.lan import WIRE, Frames
from tests.l2.node import Node
from tests.l2.simulation import Simulation, World


class SharedWorld(Simulation):
    """The simulation, with clients that are answered by name, and told by unicast."""

    def __init__(self, world: World, clients: Iterable[IP]) -> None:
        super().__init__(world)
        self.clients = tuple(clients)
        self.entries: dict[tuple[Key, IP], str] = {}  # the node that a client sends to
        self.told: list[tuple[float, str, Tell]] = []

    def tell_client(self, node: Node, action: Tell) -> None:
        """The entry is made or replaced."""
        self.told.append((self.now, node.name, action))
        if self.lan.passes(node.name, "client", WIRE, Frames.ARP):
            self.entries[action.key, action.client] = node.name

    def ask(self, key: Key, client: IP, mac: str = "") -> tuple[str, ...]:
        """A client asks everybody; who answers. The first is believed."""
        request = ArpSeen(WIRE, ArpKind.REQUEST, key.vip, mac or f"mac-{client}", asker=client)
        heard = [node for node in self.nodes.values() if self.lan.passes("client", node.name, WIRE, Frames.ARP)]
        names = tuple(node.name for node in heard if self.answers(node, request))
        for node in heard:
            self.deliver(node, request)
        if names:
            self.entries[key, client] = names[0]
        return names

    def ask_all(self) -> dict[tuple[Key, IP], tuple[str, ...]]:
        """Every client, for every address."""
        return {(key, client): self.ask(key, client) for key in self.keys for client in self.clients}
