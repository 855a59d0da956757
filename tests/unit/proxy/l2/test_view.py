from endpointslice.types import NodeName
from proxy.l2.candidates import Candidate, Table, Vip, Why
from proxy.l2.events import DrainAsked, TableChanged
from proxy.l2.types import member_id
from proxy.l2.view import View, next_owner, view
from tests.l2.simulation import Simulation, World


def shown(simulation: Simulation, name: str, without: str | None = None) -> View:
    state = simulation.nodes[name].state
    assert state is not None
    return view(state, simulation.now, without=NodeName(without) if without else None)[0]


def started() -> Simulation:
    simulation = Simulation(World(seed=1))
    simulation.boot_all()
    return simulation


def test_every_node_shows_the_same_owner_and_heirs() -> None:
    simulation = started()
    views = [shown(simulation, name) for name in simulation.nodes]

    assert {each.owner for each in views} == {simulation.owner_of(simulation.keys[0])}
    assert len({(each.heirs, each.version) for each in views}) == 1
    assert len(views[0].heirs) == 2


def test_without_its_owner_an_address_goes_where_the_view_said() -> None:
    simulation = started()
    owner = simulation.owner_of(simulation.keys[0])
    asked = next(name for name in simulation.nodes if name != owner)
    foretold = next_owner(shown(simulation, asked, without=owner), NodeName(owner))
    simulation.kill(owner)
    simulation.run(3)

    assert foretold == simulation.owner_of(simulation.keys[0])


def test_without_another_node_the_owner_stays() -> None:
    simulation = started()
    owner = simulation.owner_of(simulation.keys[0])
    other = next(name for name in simulation.nodes if name != owner)

    assert next_owner(shown(simulation, owner, without=other), NodeName(other)) == owner
    assert NodeName(other) not in shown(simulation, owner, without=other).next


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
    rows = {row.node: row for row in shown(simulation, owner).rows}

    assert {name: row.why for name, row in rows.items()} == {
        owner: Why.ELIGIBLE,
        silent: Why.SILENT,
        drainer: Why.DRAINING,
        "n8": Why.CORDONED,
        "n9": Why.SILENT,
    }
    assert rows[NodeName(owner)].owner
    assert (rows[NodeName(drainer)].beat_age_s or 1) < 0.5
    assert (rows[NodeName(silent)].beat_age_s or 0) > 1
    assert rows[NodeName("n9")].beat_age_s is None


def test_an_address_of_no_table_is_shown_by_whoever_heard_its_claim() -> None:
    simulation = started()
    key = simulation.keys[0]
    owner = simulation.owner_of(key)
    other = next(name for name in simulation.nodes if name != owner)
    simulation.tell(other, TableChanged(Table()))
    found = shown(simulation, other)

    assert (found.owner, [row.why for row in found.rows]) == (owner, [Why.NOT_IN_TABLE])
    assert member_id(NodeName(owner)) == found.version.owner
