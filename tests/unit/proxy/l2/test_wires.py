"""Wires on which no member hears another, and several wires of one node: each is judged for itself (F13)."""

from functools import partial

import pytest

from proxy.l2.actions import Note
from proxy.l2.events import LinkChanged
from proxy.l2.types import DEFAULT
from tests.l2.lan import WIRE, WIRES
from tests.l2.simulation import Simulation
from tests.l2.stories import SEEDS, others, started


@pytest.mark.parametrize("seed", SEEDS)
def test_on_a_wire_of_isolated_ports_the_node_network_says_who_is_dead(seed: int) -> None:
    simulation = started(seed, isolated=True, separate=True)
    owner = simulation.owner_of(simulation.keys[0])
    since_s = simulation.now
    simulation.kill(owner)
    simulation.run(5)

    assert {noted.node for noted in simulation.noted(Note.WIRE_BLIND)} == set(simulation.nodes)
    assert simulation.owner_of(simulation.keys[0]) in others(simulation, owner)
    assert simulation.longest_s(0, since_s) <= 1.05
    assert simulation.longest_s(2, since_s) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_an_owner_behind_isolated_ports_that_loses_the_node_network_gives_in_to_the_gateways_word(seed: int) -> None:
    """Nobody could see its answers by a look, so it is replaced while it serves."""
    simulation = started(seed, isolated=True, separate=True)
    since_s = simulation.now
    simulation.isolate(simulation.owner_of(simulation.keys[0]))
    simulation.run(6)
    simulation.lan.heal()
    simulation.run(5)

    assert simulation.longest_s(2, since_s) <= 0.5
    assert simulation.longest_s(0, since_s) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_behind_isolated_ports_owners_look_too_while_somebody_is_silent_on_the_node_network(seed: int) -> None:
    """One that starts without a memory believes that it is alone, and takes what others have."""
    simulation = started(seed, isolated=True, separate=True)
    simulation.kill("n1", forgets=True)
    simulation.isolate("n1")
    simulation.run(3)
    since_s = simulation.now
    simulation.boot("n1")
    simulation.run(10)

    assert simulation.noted(Note.TAKEN, since_s)
    assert simulation.longest_s(2, since_s) <= 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_that_loses_one_of_two_wires_keeps_its_addresses_on_the_other(seed: int) -> None:
    simulation = started(seed, wires=2, vips=6, separate=True)
    name = simulation.owner_of(simulation.keys[0])
    before = {key: simulation.owner_of(key) for key in simulation.keys}
    since_s = simulation.now
    simulation.lan.unplugged.add(name)
    simulation.tell(name, LinkChanged(WIRE, mac=f"mac-{name}", carrier=False))
    simulation.run(5)

    moved = {key for key, _name in simulation.moved(since_s)}
    assert moved == {key for key, owner in before.items() if owner == name and key.wire == WIRE}
    assert simulation.longest_s(0, since_s) <= 0.1
    assert simulation.longest_s(2, since_s) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_dead_node_is_replaced_on_all_its_wires_at_once(seed: int) -> None:
    simulation = started(seed, wires=3, vips=9)
    since_s = simulation.now
    name = simulation.owner_of(simulation.keys[0])
    before = {key: simulation.owner_of(key) for key in simulation.keys}
    simulation.kill(name)
    simulation.run(5)

    assert {key for key, _name in simulation.moved(since_s)} == {key for key, owner in before.items() if owner == name}
    assert simulation.longest_s(0, since_s) <= 1.05
    assert simulation.longest_s(2, since_s) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cut_on_one_of_two_wires_moves_nothing_where_clients_are_served(seed: int) -> None:
    """The node network says that the owner lives, and its own gateway answers."""
    simulation = started(seed, wires=2, vips=6, separate=True)
    since_s = simulation.now
    for one in simulation.nodes:
        for other in others(simulation, one):
            simulation.lan.cut.add((one, other, WIRES[1]))
    simulation.run(6)
    simulation.lan.heal()
    simulation.run(5)

    assert simulation.moved(since_s) == []
    assert simulation.longest_s(2, since_s) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_key_that_reaches_one_node_after_another_moves_nothing(seed: int) -> None:
    """A Secret takes up to a minute; two keys are accepted, and the new one signs once all say that they have it."""
    simulation = started(seed)
    since_s = simulation.now
    for number, name in enumerate(simulation.nodes):
        simulation.after(5.0 * number, partial(simulation.change_keys, name, (1, 2)))
        simulation.after(5.0 * number + 20, partial(simulation.change_keys, name, (2,)))
    simulation.run(40)
    settled_s = simulation.now
    simulation.kill(simulation.owner_of(simulation.keys[0]))
    simulation.run(5)

    assert [noted for noted in simulation.noted(Note.MEMBER_SILENT, since_s) if noted.at_s < settled_s] == []
    assert not [at_s for at_s, _key, _name in simulation.moves if since_s < at_s < settled_s]
    assert DEFAULT.detect_s * 0.6 <= simulation.longest_s(0, since_s) <= 1.05


@pytest.mark.parametrize("seed", SEEDS)
def test_who_starts_with_a_key_that_the_others_lack_yet_is_heard_by_them(seed: int) -> None:
    simulation = started(seed)
    simulation.kill("n3")
    simulation.change_keys("n3", (1, 2))
    simulation.run(3)
    simulation.boot("n3")
    simulation.run(3)

    assert hears(simulation, "n1", "n3")
    assert hears(simulation, "n3", "n1")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_dead_member_that_lacks_the_new_key_holds_nobody_to_the_old_one(seed: int) -> None:
    """Else who has lost the old key first would be deaf to the rest, until they have lost it too."""
    simulation = started(seed)
    simulation.kill("n3")
    simulation.run(5)
    since_s = simulation.now
    for number, name in enumerate(("n1", "n2")):
        simulation.after(2.0 * number, partial(simulation.change_keys, name, (1, 2)))
        simulation.after(2.0 * number + 10, partial(simulation.change_keys, name, (2,)))
    simulation.run(15)

    assert simulation.noted(Note.MEMBER_SILENT, since_s) == []
    assert hears(simulation, "n1", "n2")
    assert hears(simulation, "n2", "n1")


def hears(simulation: Simulation, name: str, other: str) -> bool:
    state = simulation.nodes[name].state
    assert state is not None
    path = state.members[simulation.nodes[other].id].path(WIRE)
    return simulation.now - path.heard_s < DEFAULT.detect_s and path.names_me
