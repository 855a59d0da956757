"""Clients of addresses that several nodes share: each keeps an entry, as kernels do, and asks when it has none."""

from collections.abc import Iterable

from msgspec.structs import replace

from endpointslice.types import IP
from proxy.l2.actions import Tell
from proxy.l2.candidates import Table
from proxy.l2.events import ArpKind, ArpSeen
from proxy.l2.shares import choose_sharer
from proxy.l2.types import Channel, Key
from tests.l2.lan import WIRE, Frames
from tests.l2.node import Node
from tests.l2.simulation import SAMPLE_S, Simulation, World
from tests.l2.watch import Watch


class SharedWorld(Simulation):
    """The simulation, all of whose addresses are shared, with clients that are answered by name and told by unicast."""

    def __init__(self, world: World, clients: Iterable[IP], *, watches: bool = False) -> None:
        super().__init__(world)
        self.clients = tuple(clients)
        self.entries: dict[tuple[Key, IP], str] = {}  # the node that a client sends to
        self.told: list[tuple[float, str, Tell]] = []
        self.seen = Watch()  # of each client, as if it asked all the time
        if watches:
            self.at(self.now, self._look)

    def table_of(self, name: str, *, local: bool = False, ready: dict[str, int] | None = None) -> Table:
        """All of its addresses are shared."""
        table = super().table_of(name, local=local, ready=ready)
        return Table({key: replace(vip, shared=True) for key, vip in table.vips.items()})

    def tell_client(self, node: Node, action: Tell) -> None:
        """The entry is made or replaced."""
        self.told.append((self.now, node.name, action))
        if self.lan.passes(node.name, "client", WIRE, Frames.ARP):
            self.entries[action.key, action.client] = node.name

    def ask(self, key: Key, client: IP, mac: str = "") -> tuple[str, ...]:
        """A client asks everybody; who answers. The first is believed."""
        request = _request(key, client, mac)
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

    def meant_for(self, key: Key, client: IP) -> str:
        """Who should answer it while every node is up."""
        weights = {node.id: 1 for node in self.nodes.values()}
        return self.by_id[choose_sharer(key, client, weights)].name

    def _look(self) -> None:
        """Who would answer each client now."""
        self.seen.now = self.now
        for key in self.keys:
            for client in self.clients:
                request = _request(key, client)
                names = [name for name, node in self.nodes.items() if self.answers(node, request)]
                place = Key(key.vip, Channel(client))  # what one client sees is a key of its own
                self.seen.saw(self.now, place, tuple(name for name in names if not self.lan.is_out(name, key.wire)))
        self.after(SAMPLE_S, self._look)


def _request(key: Key, client: IP, mac: str = "") -> ArpSeen:
    return ArpSeen(WIRE, ArpKind.REQUEST, key.vip, mac or f"mac-{client}", asker=client)
