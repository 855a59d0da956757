"""Simulated time: a queue of what happens, nodes that step, a gateway, clients, and a record of who answers."""

import heapq
import random
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec

from endpointslice.types import IP, NodeName
from proxy.announcer.hand_over import parse_state, render_state
from proxy.l2.actions import Action, Announce, Echo, FlushSockets, Keep, Look, Note, Probe, Report, Send, Tell
from proxy.l2.candidates import Candidate, Table, Vip
from proxy.l2.events import ArpKind, ArpSeen, Event, Received, TableFresh, Tick
from proxy.l2.guard import is_late
from proxy.l2.messages import Beat
from proxy.l2.state import hand_over, remember
from proxy.l2.types import DEFAULT, NOBODY, Key, Settings, Timing
from tests.l2 import packets
from tests.l2.lan import GATEWAY, WIRES, Frames, Lan
from tests.l2.node import Node, Noted, links
from tests.l2.watch import Watch

SAMPLE_S = 0.02
ASK_S = 0.2
FRESHEN_S = 2.0


def _number(event: Event) -> int:
    """What has come in is read in the order in which it was sent."""
    return event.message.header.seq if isinstance(event, Received) else 0


class World(NamedTuple):
    """What is built."""

    seed: int = 0
    nodes: int = 3
    vips: int = 4
    timing: Timing = DEFAULT
    separate: bool = False  # the node network is not the wire
    gateway: bool = True
    wires: int = 1  # on which the addresses are, in turn; only the first may be the node network, too
    isolated: bool = False  # as by a switch with isolated ports: no member hears another on a wire
    settings: Settings = Settings(NodeName(""))


class Simulation(Watch):
    """Everything in it follows from the seed."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.chance = random.Random(world.seed)
        self.wires = WIRES[: world.wires]
        self.lan = Lan(self.chance, separate=world.separate, isolated=world.isolated)
        self.queue: list[tuple[float, int, Callable[[], None]]] = []
        self.order = 0
        self.keys = [
            Key(IP(f"192.0.2.{200 + number}"), self.wires[number % world.wires]) for number in range(world.vips)
        ]
        names = [f"n{number + 1}" for number in range(world.nodes)]
        self.nodes = {name: Node(name, self._settings(name)) for name in names}
        self.by_id = {node.id: node for node in self.nodes.values()}
        self.believed: dict[IP, str] = {}  # by the gateway
        self.notes: list[Noted] = []
        self.asked = 0
        for node in self.nodes.values():
            node.table = self.table_of(node.name)
        self.announced: list[tuple[float, str, Key]] = []
        self.at(self.now, self._sample)
        self.at(self.now, self._ask)
        self.without_api: set[str] = set()  # nodes whose proxy hears nothing new
        self.at(self.now, self._freshen)

    def _settings(self, name: str) -> Settings:
        base = self.world.settings
        values = {field: getattr(base, field) for field in base.__struct_fields__}
        return Settings(**{**values, "node": NodeName(name), "timing": self.world.timing})

    def table_of(self, name: str, *, local: bool = False, ready: dict[str, int] | None = None) -> Table:
        """The same candidates everywhere; `ready`: endpoints of nodes, one each by default."""
        rows = {each: Candidate(NodeName(each), ready=(ready or {}).get(each, 0)) for each in self.nodes}
        others = tuple(row for each, row in rows.items() if each != name)
        return Table({key: Vip(key, rows[name], others, local=local) for key in self.keys})

    # Time.

    def at(self, at_s: float, act: Callable[[], None]) -> None:
        """Let something happen."""
        self.order += 1
        heapq.heappush(self.queue, (at_s, self.order, act))

    def after(self, in_s: float, act: Callable[[], None]) -> None:
        """Let something happen in a while."""
        self.at(self.now + in_s, act)

    def run(self, for_s: float) -> None:
        """Let time pass."""
        end = self.now + for_s
        while self.queue and self.queue[0][0] <= end:
            self.now, _order, act = heapq.heappop(self.queue)
            act()
        self.now = end

    # Nodes.

    def boot_all(self, *, settle_s: float = 6.0) -> None:
        """Start every node within half a second, and wait until each address has an owner."""
        for name in self.nodes:
            self.after(self.chance.random() / 2, partial(self.boot, name))
        self.run(settle_s)

    def boot(self, name: str) -> None:
        """Start a process, which knows what its predecessor wrote down."""
        node = self.nodes[name]
        gateway = GATEWAY if self.world.gateway else None
        actions = node.boot(self.now, self.world.seed, links(self.wires, name, gateway))
        self._act(node, actions)
        self._arm(node)

    def kill(self, name: str, *, forgets: bool = False) -> None:
        """SIGKILL: the node and its kernel live on, nobody answers."""
        node = self.nodes[name]
        if node.state is not None:
            node.memory = remember(node.state)
            if forgets:
                node.memory = type(node.memory)()
        node.state = None

    def surge(self, name: str) -> None:
        """A new process goes on with what the old one hands over."""
        node = self.nodes[name]
        if node.state is not None and not node.paused:
            handed = parse_state(render_state(node.state), NodeName(name))
            assert handed == node.state
            assert handed is not None
            node.state = hand_over(handed)

    def pause(self, name: str, for_s: float, *, clock: bool = False) -> None:
        """SIGSTOP; with `clock` a virtual machine that is paused, clock and all, and keeps nothing unread."""
        node = self.nodes[name]
        if node.paused or node.state is None:
            return
        node.paused = True
        node.pauses += 1
        self.after(for_s, partial(self._resume, node, node.pauses, for_s if clock else 0.0))

    def resume(self, name: str) -> None:
        """SIGCONT, before its time."""
        node = self.nodes[name]
        self._resume(node, node.pauses, 0.0)

    def _resume(self, node: Node, pauses: int, lag_s: float) -> None:
        if node.pauses != pauses or not node.paused or node.state is None:
            return
        node.paused = False
        node.lag_s += lag_s
        unread, node.inbox = node.inbox, []
        unread += node.read(self.now)
        if is_late(node.state, self.now - node.lag_s):
            actions = node.step(self.now, Tick(), more=True)
            self._act(node, actions)
            if any(isinstance(action, FlushSockets) for action in actions):
                unread = []
        for event in sorted(unread, key=_number) if not lag_s else []:
            self._act(node, node.step(self.now, event, more=True))
        self._act(node, node.step(self.now, Tick()))
        self._arm(node)

    def deliver(self, node: Node, event: Event) -> None:
        """An event for a node; a dead one has none, a stopped one keeps it unread."""
        if node.state is None:
            return
        if node.paused:
            node.inbox.append(event)
            return
        timer_s = node.timer_s
        self._read(node)
        self._act(node, node.step(self.now, event))
        if node.timer_s != timer_s:
            self._arm(node)

    def _arm(self, node: Node) -> None:
        self.at(max(self.now, node.timer_s), partial(self._tick, node, node.starts, node.timer_s))

    def _tick(self, node: Node, starts: int, timer_s: float) -> None:
        if node.starts == starts and node.timer_s == timer_s and not node.paused and node.state is not None:
            self._read(node)
            self._act(node, node.step(self.now, Tick()))
            self._arm(node)

    def _read(self, node: Node) -> None:
        for beat in node.read(self.now):
            self._act(node, node.step(self.now, beat, more=True))

    # What nodes do.

    def _act(self, node: Node, actions: tuple[Action, ...] | list[Action]) -> None:
        for action in actions:
            kind = type(action)
            if kind is Send:
                self._send(node, action)  # type: ignore[arg-type]  # told by its type
            elif kind is Keep:
                self._keep(node, action)  # type: ignore[arg-type]  # told by its type
            elif kind is Look:
                packets.look(self, node, action)  # type: ignore[arg-type]  # told by its type
            elif kind is Probe:
                packets.probe(self, node, action)  # type: ignore[arg-type]  # told by its type
            elif kind is Echo:
                packets.echo(self, node, action)  # type: ignore[arg-type]  # told by its type
            elif kind is Announce:
                packets.announce(self, node, action)  # type: ignore[arg-type]  # told by its type
            elif kind is Tell:
                self.tell_client(node, action)  # type: ignore[arg-type]  # told by its type
            elif kind is Report:
                self.notes.append(Noted(self.now, node.name, action))  # type: ignore[arg-type]  # told by its type

    def _keep(self, node: Node, kept: Keep) -> None:
        node.kept = kept
        self.at(kept.at_s + node.lag_s, partial(self._send_kept, node, kept))

    def _send_kept(self, node: Node, kept: Keep) -> None:
        due = node.state is not None and not node.paused and self.now - node.lag_s < node.state.due_s
        for send in kept.sends if due and node.kept is kept else ():
            self._send(node, send)

    def _send(self, node: Node, action: Send) -> None:
        node.sent[type(action.message.body).__name__] += 1
        event = Received(action.channel, action.message)
        to = action.message.to
        receivers = self.nodes.values() if to == NOBODY else [self.by_id.get(to)]
        for receiver in receivers:
            if receiver is not None and receiver is not node and self._passes(node, receiver, action):
                self.after(self.lan.delay_s(), partial(self._hear, receiver, event, action.key_id))

    def _hear(self, receiver: Node, event: Received, key_id: int) -> None:
        """What is signed by a key that the receiver doesn't have never reaches the machine."""
        if key_id not in receiver.settings.keys:
            return
        if isinstance(event.message.body, Beat) and receiver.state is not None and not receiver.paused:
            receiver.keep(self.now, event)
        else:
            self.deliver(receiver, event)

    def change_keys(self, name: str, keys: tuple[int, ...]) -> None:
        """A node's Secret is another now; its process reads it while it runs."""
        node = self.nodes[name]
        node.settings = msgspec.structs.replace(node.settings, keys=keys)
        if node.state is not None:
            node.state = msgspec.structs.replace(node.state, settings=node.settings)

    def _passes(self, node: Node, receiver: Node, action: Send) -> bool:
        return self.lan.passes(node.name, receiver.name, action.channel, Frames.MESSAGE)

    def answers(self, node: Node, request: ArpSeen) -> bool:
        """Whether the node would answer now."""
        return packets.answers(node, self.now, request)

    def tell_client(self, node: Node, action: Tell) -> None:
        """A client is told; who has clients that keep entries does more."""

    # What clients see.

    def _ask(self) -> None:
        """A client asks everybody for one address after the other: the wire is never silent of frames."""
        key = self.keys[self.asked % len(self.keys)]
        self.asked += 1
        event = ArpSeen(key.wire, ArpKind.REQUEST, key.vip, "mac-client")
        for node in self.nodes.values():
            if self.lan.passes("client", node.name, key.wire, Frames.ARP):
                self.after(self.lan.delay_s(), partial(self.deliver, node, event))
        self.after(ASK_S, self._ask)

    def _freshen(self) -> None:
        """Each node's proxy says that its table is as fresh as the API."""
        for name, node in self.nodes.items():
            if name not in self.without_api:
                self.deliver(node, TableFresh())
        self.after(FRESHEN_S, self._freshen)

    def _sample(self) -> None:
        for key in self.keys:
            request = ArpSeen(key.wire, ArpKind.REQUEST, key.vip, "mac-client")
            names = [name for name, node in self.nodes.items() if self.answers(node, request)]
            self.saw(self.now, key, tuple(name for name in names if not self.lan.is_out(name, key.wire)))
        self.after(SAMPLE_S, self._sample)

    def noted(self, note: Note, since_s: float = 0.0) -> list[Noted]:
        """What was reported of a kind."""
        return [each for each in self.notes if each.report.note is note and each.at_s > since_s]

    def tell(self, name: str, event: Event) -> None:
        """An event of the node's own, with all that follows from it."""
        self.deliver(self.nodes[name], event)

    def isolate(self, *names: str, only_messages: bool = False) -> None:
        """Cut these from the other members; clients and the gateway still hear everybody."""
        self.lan.separate_groups(names, set(self.nodes) - set(names), only_messages=only_messages)
