"""What an announcer tells its proxy of what it owns, and any bytes in its place."""

from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import IP, NodeName
from proxy.announcer.feed_frames import LENGTH_BYTES, BrokenFrameError
from proxy.announcer.ownership import (
    Conflict,
    Holding,
    Origin,
    Ownership,
    Story,
    describe_ownership,
    may_change,
    pack_ownership,
    parse_ownership,
)
from proxy.l2.events import ArpKind, ArpSeen, LinkChanged
from proxy.l2.evidence import CONFLICT_S, DEFEND_S
from tests.fuzz_inputs import damaged
from tests.l2.lan import WIRE
from tests.l2.simulation import Simulation, World
from tests.l2.stories import started

IDLE = Story({}, 0)
INTERFACES = {WIRE: "eth0"}
PRINTER = "02:00:00:00:00:99"

texts = st.text(max_size=5)
ownerships = st.builds(
    Ownership,
    st.lists(st.builds(Holding, texts.map(IP), texts, st.builds(Origin, texts, texts.map(NodeName))), max_size=3).map(
        tuple
    ),
    st.lists(st.builds(Conflict, texts.map(IP), texts, texts, st.booleans()), max_size=3).map(tuple),
    st.integers(0, 9),
)


def told(simulation: Simulation, name: str) -> Ownership:
    state = simulation.nodes[name].state
    assert state is not None
    return describe_ownership(state, simulation.now, INTERFACES, IDLE)


def see(simulation: Simulation, name: str, vip: IP, mac: str = PRINTER) -> None:
    simulation.tell(name, ArpSeen(WIRE, ArpKind.REPLY, vip, mac, broadcast=False))


@given(ownerships)
def test_what_is_packed_is_read(ownership: Ownership) -> None:
    assert parse_ownership(pack_ownership(ownership)[LENGTH_BYTES:]) == ownership


@given(st.one_of(st.binary(max_size=100), damaged([pack_ownership(Ownership((Holding(IP("192.0.2.1"), "eth0"),)))])))
def test_any_bytes_are_an_ownership_or_are_refused(data: bytes) -> None:
    try:
        parse_ownership(data)
    except BrokenFrameError as error:
        assert str(error)  # noqa: PT017  # either is right


def test_each_address_is_told_by_its_owner_alone() -> None:
    simulation = started(1)
    owners = {holding.vip: name for name in simulation.nodes for holding in told(simulation, name).holdings}

    assert owners == {key.vip: simulation.owner_of(key) for key in simulation.keys}
    assert sum(len(told(simulation, name).holdings) for name in simulation.nodes) == len(simulation.keys)


def test_a_foreign_host_is_told_by_the_owner_once_it_is_no_passing_mistake_and_until_it_is_gone() -> None:
    simulation = started(1)
    key = simulation.keys[0]
    owner = simulation.owner_of(key)
    see(simulation, owner, key.vip)
    assert told(simulation, owner).conflicts == (), "a member's MAC may be told a moment later"

    simulation.run(2)
    assert told(simulation, owner).conflicts == (Conflict(key.vip, "eth0", PRINTER, held=True),)
    assert all(not told(simulation, name).conflicts for name in simulation.nodes if name != owner)
    state = simulation.nodes[owner].state
    assert state is not None
    assert may_change(state, simulation.now)

    simulation.run(CONFLICT_S)
    assert told(simulation, owner).conflicts == ()


def with_a_printer(seconds: float) -> Simulation:
    """Nodes that have started so long ago; a foreign host answers for the first address until then."""
    simulation = Simulation(World(seed=1))
    for name in simulation.nodes:
        simulation.boot(name)
    until_s = simulation.now + seconds

    def answer_probes() -> None:
        for name in simulation.nodes:
            see(simulation, name, simulation.keys[0].vip)
        if simulation.now < until_s:
            simulation.after(0.05, answer_probes)

    answer_probes()
    simulation.run(seconds)
    return simulation


def conflicts(simulation: Simulation) -> list[Conflict]:
    """Those that any node tells of."""
    return [one for name in simulation.nodes for one in told(simulation, name).conflicts]


def test_an_address_that_nobody_takes_is_told_by_one() -> None:
    simulation = with_a_printer(10)

    assert conflicts(simulation) == [Conflict(simulation.keys[0].vip, "eth0", PRINTER, held=False)]


def test_a_foreign_host_is_told_of_no_more_once_its_silence_let_a_node_take_the_address() -> None:
    simulation = with_a_printer(10)

    simulation.run(DEFEND_S + 3)

    assert simulation.owner_of(simulation.keys[0]) != ""
    assert conflicts(simulation) == []


def test_a_members_own_mac_is_no_foreign_one() -> None:
    simulation = started(1)
    key = simulation.keys[0]
    owner = simulation.owner_of(key)
    other = next(name for name in simulation.nodes if name != owner)
    see(simulation, owner, key.vip, "mac-new")
    simulation.tell(other, LinkChanged(WIRE, "mac-new"))
    simulation.run(2)

    assert told(simulation, owner).conflicts == ()
