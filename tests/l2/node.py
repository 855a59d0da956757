"""A simulated process: it steps the machine and remembers what it was told to do."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from endpointslice.types import NodeName
from proxy.l2.actions import Action, Keep, Note, Report
from proxy.l2.candidates import Table
from proxy.l2.events import Event, LinkChanged, Received, TableChanged
from proxy.l2.machine import step
from proxy.l2.state import Memory, Start, State, start
from proxy.l2.types import Channel, Key, MemberId, Settings, Version, member_id
from tests.l2.checks import BrokenError, check_step


class Noted:
    """A report with its time and node."""

    def __init__(self, at_s: float, node: str, report: Report) -> None:
        self.at_s, self.node, self.report = at_s, node, report

    def __repr__(self) -> str:
        key = self.report.key.vip if self.report.key else ""
        return f"{self.at_s:8.3f} {self.node} {self.report.note} {key} {self.report.detail}"


class Node:
    """One member of the simulation."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self.id: MemberId = member_id(NodeName(name))
        self.settings = settings
        self.state: State | None = None
        self.paused = False
        self.lag_s = 0.0  # how far its clock is behind the world's
        self.inbox: list[Event] = []  # unread, while paused
        self.heartbeats: dict[
            object, tuple[float, Received]
        ] = {}  # unread, with when they came; of alike ones the last
        self.timer_s = 0.0
        self.kept: Keep | None = None
        self.starts = 0
        self.pauses = 0
        self.memory = Memory()
        self.table = Table()
        self.trace: list[tuple[float, Event, bool, tuple[Action, ...]]] | None = None
        self.origin: State | None = None
        self.sent: Counter[str] = Counter()
        self.claims: dict[tuple[Key, Version], int] = {}  # with the session that made it

    def boot(self, now: float, seed: int, links: tuple[LinkChanged, ...]) -> list[Action]:
        """Start a process."""
        self.starts += 1
        self.claims = {made: session for made, session in self.claims.items() if made[0] in self.memory.held}
        drawn = Start(hash((seed, self.id, self.starts)) & 0xFFFFFFFF, f"{seed} {self.name}".encode(), self.memory)
        self.state = self.origin = start(self.settings, drawn, now - self.lag_s)
        self.paused = False
        self.pauses += 1
        self.inbox.clear()
        self.heartbeats.clear()
        self.kept = None
        actions: list[Action] = []
        for link in links:
            actions += self.step(now, link)
        actions += self.step(now, TableChanged(self.table))
        return actions

    def step(self, now: float, event: Event, *, more: bool = False) -> tuple[Action, ...]:
        """One step of the machine, checked."""
        if self.state is None:
            return ()
        before = self.state
        self.state, actions = step(before, now - self.lag_s, event, more=more)
        check_step(self.name, before, event, self.state, actions)
        self._check_claims(before, self.state)
        if self.trace is not None:
            self.trace.append((now - self.lag_s, event, more, actions))
        self.timer_s = self.state.due_s + self.lag_s
        return actions

    def keep(self, now: float, beat: Received) -> None:
        """A heartbeat wakes nobody: it is read with what comes next, or when that is due."""
        header = beat.message.header
        alike = beat.channel, header.sender, header.session, beat.message.to
        if alike not in self.heartbeats or self.heartbeats[alike][1].message.header.seq < header.seq:
            self.heartbeats[alike] = now, beat

    def read(self, now: float) -> list[Received]:
        """The heartbeats that came, by their numbers."""
        found = [msgspec.structs.replace(beat, age_s=now - at_s) for at_s, beat in self.heartbeats.values()]
        self.heartbeats.clear()
        return sorted(found, key=lambda beat: beat.message.header.seq)

    def _check_claims(self, before: State, after: State) -> None:
        """Invariant 3: no two starts of a node make the same claim of a key that it remembers.

        One that knows nothing goes beyond what it hears, and may hear nobody: a lost epoch is no second owner (F9).
        """
        for key in after.mine:
            hold = after.holds[key]
            if hold.owner == self.id and before.holds.get(key) is not hold:
                session = self.claims.setdefault((key, hold.known), after.session)
                if session != after.session:
                    raise BrokenError(f"3: {self.name} made the claim {hold.known} of {key} twice")

    def owns(self, key: Key) -> bool:
        """Whether it says so."""
        hold = self.state.holds.get(key) if self.state is not None else None
        return hold is not None and hold.owner == self.id

    def notes(self, actions: tuple[Action, ...] | list[Action]) -> list[tuple[Note, Report]]:
        """What of them is for people."""
        return [(action.note, action) for action in actions if isinstance(action, Report)]


def links(wires: Iterable[Channel], name: str, gateway: str | None) -> tuple[LinkChanged, ...]:
    """What a node's netlink says at its start."""
    return tuple(
        LinkChanged(wire, mac=f"mac-{name}", gateway=gateway)  # type: ignore[arg-type]  # names do for addresses
        for wire in wires
    )
