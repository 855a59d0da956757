"""A node, a link or a process is lost: how long clients are without an answer, or with two."""

import pytest
from msgspec.structs import replace

from endpointslice.types import NodeName
from proxy.l2.actions import Note
from proxy.l2.events import LinkChanged, TableChanged
from proxy.l2.types import DEFAULT, FAST, Settings, Timing, WithoutMajority
from tests.l2.lan import GATEWAY, WIRE
from tests.l2.simulation import Simulation, World

SEEDS = range(6)


def started(seed: int, nodes: int = 3, **world: object) -> Simulation:
    simulation = Simulation(World(seed=seed, nodes=nodes, **world))  # type: ignore[arg-type]  # its own fields
    simulation.boot_all()
    return simulation


def owner_and_rest(simulation: Simulation) -> tuple[str, list[str]]:
    owner = simulation.owner_of(simulation.keys[0])
    return owner, [name for name in simulation.nodes if name != owner]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("timing", "limit_s"), [(DEFAULT, 1.05), (FAST, 0.37)])
def test_a_dead_owner_is_replaced_within_the_time_of_detection(seed: int, timing: Timing, limit_s: float) -> None:
    simulation = started(seed, timing=timing)
    since_s = simulation.now
    simulation.kill(owner_and_rest(simulation)[0])
    simulation.run(5)

    assert timing.detect_s * 0.6 <= simulation.longest_s(0, since_s) <= limit_s
    assert simulation.longest_s(2, since_s) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_that_comes_back_moves_nothing(seed: int) -> None:
    simulation = started(seed)
    owner, _rest = owner_and_rest(simulation)
    simulation.lan.unplugged.add(owner)
    simulation.run(5)
    since_s = simulation.now
    simulation.lan.unplugged.discard(owner)
    simulation.run(20)

    assert simulation.moved(since_s) == []
    assert simulation.longest_s(2, since_s) <= 0.2
    assert simulation.longest_s(0, since_s) == 0


def test_a_node_that_stops_and_starts_each_five_seconds_loses_its_addresses_once() -> None:
    simulation = started(1)
    owner, _rest = owner_and_rest(simulation)
    since_s = simulation.now
    for _round in range(5):
        simulation.kill(owner)
        simulation.run(5)
        simulation.boot(owner)
        simulation.run(5)

    moved = [key for key, _name in simulation.moved(since_s)]
    assert len(moved) == len(set(moved))


@pytest.mark.parametrize("seed", SEEDS)
def test_all_frames_cut_around_the_owner_end_in_one_owner_and_the_heal_shows_nothing(seed: int) -> None:
    simulation = started(seed)
    owner, _rest = owner_and_rest(simulation)
    since_s = simulation.now
    simulation.isolate(owner)
    simulation.run(6)
    healed_s = simulation.now
    two_s = simulation.longest_s(2, since_s)
    simulation.lan.heal()
    simulation.run(5)

    assert 0 < two_s <= 0.5
    assert simulation.longest_s(2, healed_s) <= 0.05
    assert len(simulation.moved(since_s)) == len({key for key, _name in simulation.moved(since_s)})
    assert simulation.longest_s(0, since_s) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_all_frames_cut_around_a_node_that_owns_nothing_move_nothing(seed: int) -> None:
    simulation = started(seed, vips=1)
    _owner, rest = owner_and_rest(simulation)
    since_s = simulation.now
    simulation.isolate(rest[0])
    simulation.run(6)
    simulation.lan.heal()
    simulation.run(5)

    assert simulation.moved(since_s) == []
    assert simulation.longest_s(2, since_s) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_heartbeats_cut_by_a_firewall_move_nothing_as_arp_still_answers(seed: int) -> None:
    simulation = started(seed)
    owner, _rest = owner_and_rest(simulation)
    since_s = simulation.now
    simulation.isolate(owner, only_messages=True)
    simulation.run(10)
    simulation.lan.heal()
    simulation.run(5)

    assert simulation.moved(since_s) == []
    assert simulation.longest_s(2, since_s) == 0
    assert simulation.noted(Note.PARTITION, since_s)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("timing", [DEFAULT, FAST])
def test_a_stopped_owner_that_goes_on_never_answers_beside_the_new_one(seed: int, timing: Timing) -> None:
    simulation = started(seed, timing=timing)
    owner, _rest = owner_and_rest(simulation)
    since_s = simulation.now
    simulation.pause(owner, 5.0)
    simulation.run(15)

    assert simulation.longest_s(2, since_s) == 0
    assert simulation.longest_s(0, since_s) <= 1.05
    assert simulation.noted(Note.LATE, since_s)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stopped_peer_that_goes_on_takes_nothing_from_the_living(seed: int) -> None:
    simulation = started(seed, vips=1)
    _owner, rest = owner_and_rest(simulation)
    since_s = simulation.now
    for name in rest:
        simulation.pause(name, 5.0)
    simulation.run(15)

    assert simulation.moved(since_s) == []
    assert simulation.longest_s(2, since_s) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_virtual_machine_whose_clock_stood_gives_way_within_an_interval(seed: int) -> None:
    simulation = started(seed)
    owner, _rest = owner_and_rest(simulation)
    since_s = simulation.now
    simulation.pause(owner, 5.0, clock=True)
    simulation.run(15)

    assert simulation.longest_s(2, since_s) <= DEFAULT.interval_s
    assert len({key for key, _name in simulation.moved(since_s)}) == len(simulation.moved(since_s))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_last_of_three_serves_after_the_last_resort(seed: int) -> None:
    simulation = started(seed)
    owner, rest = owner_and_rest(simulation)
    since_s = simulation.now
    simulation.kill(owner)
    simulation.kill(rest[0])
    simulation.run(20)

    assert {simulation.owner_of(key) for key in simulation.keys} == {rest[1]}
    assert 9.5 <= simulation.longest_s(0, since_s) <= 11.5
    assert simulation.noted(Note.LAST_RESORT)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_last_of_three_waits_longer_while_the_api_says_that_the_others_are_ready(seed: int) -> None:
    simulation = started(seed)
    owner, rest = owner_and_rest(simulation)
    since_s = simulation.now
    for name, node in simulation.nodes.items():
        simulation.tell(name, TableChanged(replace(node.table, peers_ready=True)))
    simulation.kill(owner)
    simulation.kill(rest[0])
    simulation.run(60)

    assert {simulation.owner_of(key) for key in simulation.keys} == {rest[1]}
    assert 44.0 <= simulation.longest_s(0, since_s) <= 47.0


def test_who_prefers_dark_to_two_answers_has_no_last_resort() -> None:
    simulation = started(0, settings=Settings(NodeName(""), without_majority=WithoutMajority.NEVER))
    owner, rest = owner_and_rest(simulation)
    simulation.kill(owner)
    simulation.kill(rest[0])
    simulation.run(80)

    assert simulation.owner_of(simulation.keys[0]) == ""
    assert not simulation.noted(Note.LAST_RESORT)


@pytest.mark.parametrize("seed", SEEDS)
def test_of_two_nodes_the_other_takes_over_by_the_gateways_vote(seed: int) -> None:
    simulation = started(seed, nodes=2)
    owner, rest = owner_and_rest(simulation)
    since_s = simulation.now
    simulation.kill(owner)
    simulation.run(5)

    assert {simulation.owner_of(key) for key in simulation.keys} == set(rest)
    assert simulation.longest_s(0, since_s) <= 1.1


@pytest.mark.parametrize("seed", SEEDS)
def test_of_two_nodes_that_are_cut_one_gives_in(seed: int) -> None:
    simulation = started(seed, nodes=2)
    owner, _rest = owner_and_rest(simulation)
    since_s = simulation.now
    simulation.isolate(owner)
    simulation.run(6)
    simulation.lan.heal()
    simulation.run(5)

    assert simulation.longest_s(2, since_s) <= 0.5
    assert all(simulation.owner_of(key) for key in simulation.keys)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_single_node_serves_alone(seed: int) -> None:
    simulation = started(seed, nodes=1)
    since_s = simulation.now
    simulation.run(30)

    assert simulation.owner_of(simulation.keys[0]) == "n1"
    assert simulation.longest_s(0, since_s) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_an_owner_without_carrier_is_replaced_in_milliseconds_by_word_on_the_node_network(seed: int) -> None:
    simulation = started(seed, separate=True)
    owner, _rest = owner_and_rest(simulation)
    since_s = simulation.now
    simulation.lan.unplugged.add(owner)
    simulation.tell(owner, LinkChanged(WIRE, mac=f"mac-{owner}", carrier=False, gateway=None))
    simulation.run(5)

    assert simulation.longest_s(0, since_s) <= 0.1
    assert simulation.longest_s(2, since_s) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_an_owner_that_is_silent_on_the_wire_agrees_to_go_when_its_gateway_is_silent_too(seed: int) -> None:
    simulation = started(seed, separate=True)
    owner, rest = owner_and_rest(simulation)
    simulation.lan.unplugged.add(owner)
    simulation.run(6)

    assert simulation.owner_of(simulation.keys[0]) in rest
    assert simulation.longest_s(2, 100.0) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_an_owner_that_is_heard_on_the_node_network_and_serves_clients_stays(seed: int) -> None:
    simulation = started(seed, separate=True)
    owner, rest = owner_and_rest(simulation)
    since_s = simulation.now
    simulation.lan.cut |= {way for other in rest for way in ((owner, other, WIRE), (other, owner, WIRE))}
    simulation.run(6)
    simulation.lan.heal()
    simulation.run(5)

    assert simulation.moved(since_s) == []
    assert simulation.longest_s(2, since_s) == 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("timing", "loss", "limit_s"), [(DEFAULT, 0.05, 0.0), (DEFAULT, 0.2, 0.1), (FAST, 0.2, 0.1)])
def test_lost_frames_alone_make_no_second_owner(seed: int, timing: Timing, loss: float, limit_s: float) -> None:
    simulation = started(seed, timing=timing)
    since_s = simulation.now
    simulation.lan.loss = loss
    simulation.run(30)

    assert simulation.longest_s(2, since_s) <= limit_s
    assert len(simulation.moved(since_s)) <= 2


def test_a_wire_that_bounces_for_a_minute_is_served_again_by_one() -> None:
    simulation = started(3)
    since_s = simulation.now
    simulation.lan.unplugged |= {*simulation.nodes, GATEWAY}
    simulation.run(60)
    healed_s = simulation.now
    simulation.lan.heal()
    simulation.run(5)

    assert all(simulation.owner_of(key) for key in simulation.keys)
    assert simulation.longest_s(2, since_s) == 0
    assert simulation.longest_s(0, healed_s) <= 1.3  # who agreed to be replaced as the wire healed waits as if lost


@pytest.mark.parametrize("seed", SEEDS)
def test_the_winner_of_a_partition_announces_again_after_the_heal(seed: int) -> None:
    simulation = started(seed, gateway=False)
    owner, _rest = owner_and_rest(simulation)
    key = simulation.keys[0]
    simulation.isolate(owner)
    simulation.run(4)
    healed_s = simulation.now
    simulation.lan.heal()
    simulation.run(3)
    winner = simulation.owner_of(key)

    assert winner not in {"", owner}
    assert any(at_s > healed_s and (name, what) == (winner, key) for at_s, name, what in simulation.announced)
    assert not any(at_s > healed_s + 0.3 and name == owner for at_s, name, _what in simulation.announced)
