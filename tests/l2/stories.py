"""What the stories on the simulated LAN share: a start, tables of candidates, and who does what."""

from functools import lru_cache, partial
from typing import Any

from endpointslice.types import NodeName
from proxy.l2.candidates import Candidate, Table, Vip, Why
from proxy.l2.events import Received, TableChanged
from proxy.l2.messages import Body, Header, Message
from proxy.l2.state import Member, State
from proxy.l2.types import NODE_NETWORK, Key, Mine, Tier
from tests.l2.simulation import Simulation, World

SEEDS = range(4)


def started(seed: int, nodes: int = 3, **world: object) -> Simulation:
    simulation = Simulation(World(seed=seed, nodes=nodes, **world))  # type: ignore[arg-type]  # its own fields
    simulation.boot_all()
    return simulation


@lru_cache
def settled() -> State:
    """What the first of three knows once all rests."""
    simulation = Simulation(World(seed=2))
    simulation.boot_all(settle_s=20)
    state = simulation.nodes["n1"].state
    assert state is not None
    return state


def retable(simulation: Simulation, rows: dict[str, Candidate], **vip: Any) -> None:  # noqa: ANN401  # its own fields
    """Give every node's proxy these candidates, for every address, a few milliseconds apart."""
    for name in simulation.nodes:
        others = tuple(row for other, row in rows.items() if other != name)
        table = Table({key: Vip(key, rows[name], others, **vip) for key in simulation.keys})
        simulation.nodes[name].table = table
        simulation.after(simulation.chance.random() / 10, partial(simulation.tell, name, TableChanged(table)))


def rows(simulation: Simulation, **changed: Candidate) -> dict[str, Candidate]:
    return {name: changed.get(name, Candidate(NodeName(name))) for name in simulation.nodes}


def row(name: str, why: Why = Why.ELIGIBLE, tier: Tier = Tier.READY, preference: int = 0) -> Candidate:
    return Candidate(NodeName(name), why, tier, preference)


def mine(simulation: Simulation, name: str, key: Key) -> Mine:
    state = simulation.nodes[name].state
    return state.holds[key].mine if state is not None else Mine.NONE


def word_of(member: Member, body: Body, clock_s: float, ahead: int = 1) -> Received:
    """A word of the member on the node network, by default with the number after the last that was heard there."""
    header = Header(member.id, member.session or 0, member.seqs[NODE_NETWORK] + ahead, clock_s)
    return Received(NODE_NETWORK, Message(header, body))


def others(simulation: Simulation, name: str) -> list[str]:
    return [each for each in simulation.nodes if each != name]
