"""What an announcer tells of an address: its owner, who would be next, and why each other node isn't. Values only."""

from endpointslice.types import NodeName
from proxy.announcer.status import NO_NODE, VipStatus, describe
from proxy.l2.candidates import Candidate, Table, Vip, Why
from proxy.l2.events import DrainAsked, TableChanged
from tests.l2.simulation import Simulation, World


def shown(simulation: Simulation, name: str, without: str = NO_NODE) -> VipStatus:
    state = simulation.nodes[name].state
    assert state is not None
    return describe(state, simulation.now, NodeName(without)).vips[0]


def started() -> Simulation:
    simulation = Simulation(World(seed=1))
    simulation.boot_all()
    return simulation


def test_every_node_shows_the_same_owner_and_heirs() -> None:
    simulation = started()
    views = [shown(simulation, name) for name in simulation.nodes]

    assert {each.owner for each in views} == {simulation.owner_of(simulation.keys[0])}
    assert len({(each.heirs, each.epoch) for each in views}) == 1
    assert len(views[0].heirs) == 2


def test_without_its_owner_an_address_goes_where_the_status_said() -> None:
    simulation = started()
    owner = simulation.owner_of(simulation.keys[0])
    asked = next(name for name in simulation.nodes if name != owner)
    foretold = shown(simulation, asked, without=owner).owner
    simulation.kill(owner)
    simulation.run(3)

    assert foretold == simulation.owner_of(simulation.keys[0])


def test_without_another_node_the_owner_stays() -> None:
    simulation = started()
    owner = simulation.owner_of(simulation.keys[0])
    other = next(name for name in simulation.nodes if name != owner)

    assert shown(simulation, owner, without=other).owner == owner
    assert other not in shown(simulation, owner, without=other).heirs


def test_each_candidate_that_is_none_says_why() -> None:
    simulation = started()
    key = simulation.keys[0]
    owner = simulation.owner_of(key)
    silent, drainer = [name for name in simulation.nodes if name != owner]
    others = (
        Candidate(NodeName(silent)),
        Candidate(NodeName(drainer)),
        Candidate(NodeName("n8"), Why.CORDONED),
        Candidate(NodeName("n9")),
    )
    vip = Vip(key, Candidate(NodeName(owner)), others)
    simulation.tell(drainer, DrainAsked())
    simulation.tell(owner, TableChanged(Table({key: vip})))
    simulation.kill(silent)
    simulation.run(2)
    rows = {row.node: row for row in shown(simulation, owner).candidates}

    assert {name: row.why for name, row in rows.items()} == {
        owner: Why.ELIGIBLE,
        silent: Why.SILENT,
        drainer: Why.DRAINING,
        "n8": Why.CORDONED,
        "n9": Why.SILENT,
    }
    assert shown(simulation, owner).owner == owner
    assert (rows[NodeName(drainer)].heard_s or 1) < 0.5
    assert (rows[NodeName(silent)].heard_s or 0) > 1
    assert rows[NodeName("n9")].heard_s is None


def test_an_address_of_no_table_is_shown_by_whoever_heard_its_claim() -> None:
    simulation = started()
    key = simulation.keys[0]
    owner = simulation.owner_of(key)
    other = next(name for name in simulation.nodes if name != owner)
    simulation.tell(other, TableChanged(Table()))
    found = shown(simulation, other)

    assert (found.owner, [row.why for row in found.candidates]) == (owner, [Why.NOT_IN_TABLE])
