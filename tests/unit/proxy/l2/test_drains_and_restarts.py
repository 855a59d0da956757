"""Drains, restarts, joining and leaving, and outages of the API: what moves, and what clients notice."""

from collections import Counter

import pytest
from msgspec.structs import replace

from endpointslice.types import NodeName
from proxy.l2.actions import Note, Send
from proxy.l2.candidates import Why
from proxy.l2.events import ArpKind, ArpSeen, DrainAsked, DrainEnded, MemberDeleted, ProxyGone, RestartAsked, StopAsked
from proxy.l2.messages import Beat
from proxy.l2.types import DEFAULT, DrainCause, Mine, Settings, member_id
from tests.l2.lan import WIRE
from tests.l2.simulation import SAMPLE_S, Simulation, World
from tests.l2.stories import SEEDS, mine, others, retable, row, started


@pytest.mark.parametrize("seed", SEEDS)
def test_a_drain_has_no_moment_without_an_answer_and_none_with_two(seed: int) -> None:
    simulation = started(seed)
    key = simulation.keys[0]
    owner = simulation.owner_of(key)
    since_s = simulation.now
    simulation.tell(owner, DrainAsked())
    simulation.run(2)
    heir = simulation.owner_of(key)

    assert heir not in {"", owner}
    assert (mine(simulation, owner, key), mine(simulation, heir, key)) == (Mine.LINGER, Mine.QUIET)
    assert not any(at_s > since_s for at_s, _name, what in simulation.announced if what == key)
    simulation.run(35)
    assert (mine(simulation, owner, key), mine(simulation, heir, key)) == (Mine.NONE, Mine.HOLD)
    assert any(at_s > since_s and name == heir for at_s, name, what in simulation.announced if what == key)
    assert simulation.longest_s(0, since_s) == 0
    assert simulation.longest_s(2, since_s) <= SAMPLE_S
    assert simulation.noted(Note.DRAINED)


@pytest.mark.parametrize("seed", SEEDS)
def test_while_a_drain_lasts_each_frame_has_one_answer(seed: int) -> None:
    """A broadcast is the new owner's, a probe to its own MAC each one's."""
    simulation = started(seed)
    key = simulation.keys[0]
    owner = simulation.owner_of(key)
    simulation.tell(owner, DrainAsked())
    simulation.run(2)
    answering = {
        (name, broadcast)
        for name, node in simulation.nodes.items()
        for broadcast in (True, False)
        if simulation.answers(node, ArpSeen(WIRE, ArpKind.REQUEST, key.vip, "mac-client", broadcast=broadcast))
    }
    heir = simulation.owner_of(key)

    assert answering == {(owner, False), (heir, True), (heir, False)}


def test_a_drain_that_ends_takes_nothing_back() -> None:
    simulation = started(0)
    owner = simulation.owner_of(simulation.keys[0])
    simulation.tell(owner, DrainAsked())
    simulation.run(40)
    since_s = simulation.now
    simulation.tell(owner, DrainEnded())
    simulation.run(40)

    assert simulation.moved(since_s) == []


def test_the_last_node_that_may_own_keeps_its_addresses_through_a_drain() -> None:
    simulation = started(0, nodes=1)
    simulation.tell("n1", DrainAsked())
    simulation.run(20)

    assert simulation.owner_of(simulation.keys[0]) == "n1"
    assert not simulation.noted(Note.DRAINED)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_heir_whose_drainer_dies_in_the_grace_time_announces_at_once(seed: int) -> None:
    simulation = started(seed)
    key = simulation.keys[0]
    owner = simulation.owner_of(key)
    simulation.tell(owner, DrainAsked())
    simulation.run(2)
    heir = simulation.owner_of(key)
    since_s = simulation.now
    simulation.kill(owner)
    simulation.run(1.5)

    assert any(at_s > since_s and name == heir for at_s, name, what in simulation.announced if what == key)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_restart_by_hand_over_moves_nothing_and_has_no_gap(seed: int) -> None:
    simulation = started(seed)
    since_s = simulation.now
    for name in simulation.nodes:
        simulation.tell(name, RestartAsked())
        simulation.surge(name)
        simulation.run(3)

    assert simulation.moved(since_s) == []
    assert simulation.longest_s(0, since_s) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_restart_without_a_second_process_moves_nothing_within_three_seconds(seed: int) -> None:
    simulation = started(seed)
    owner = simulation.owner_of(simulation.keys[0])
    since_s = simulation.now
    simulation.tell(owner, RestartAsked())
    simulation.run(0.1)
    simulation.kill(owner)
    simulation.run(1.2)
    simulation.boot(owner)
    simulation.run(10)

    assert simulation.moved(since_s) == []
    assert simulation.longest_s(0, since_s) <= 3.0


def test_a_killed_daemon_that_is_back_within_the_time_of_detection_keeps_its_addresses() -> None:
    simulation = started(2)
    owner = simulation.owner_of(simulation.keys[0])
    since_s = simulation.now
    simulation.kill(owner)
    simulation.run(0.4)
    simulation.boot(owner)
    simulation.run(10)

    assert simulation.moved(since_s) == []
    assert simulation.longest_s(0, since_s) <= 1.2


@pytest.mark.parametrize("seed", SEEDS)
def test_a_joining_node_moves_nothing(seed: int) -> None:
    simulation = Simulation(World(seed=seed, nodes=4, vips=3, settings=Settings(NodeName(""), spreads=False)))
    for name in ("n1", "n2", "n3"):
        simulation.boot(name)
    simulation.run(6)
    since_s = simulation.now
    simulation.boot("n4")
    simulation.run(70)

    assert simulation.moved(since_s) == []


def test_an_api_outage_of_any_length_moves_nothing_and_sends_nothing_but_heartbeats() -> None:
    simulation = started(1)
    simulation.without_api.update(simulation.nodes)
    simulation.run(70)
    before = {name: Counter(node.sent) for name, node in simulation.nodes.items()}
    since_s = simulation.now
    simulation.run(300)

    assert simulation.moved(since_s) == []
    for name, node in simulation.nodes.items():
        assert set(node.sent - before[name]) == {"Beat"}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_lost_during_an_api_outage_is_replaced_as_fast_as_ever(seed: int) -> None:
    simulation = started(seed)
    simulation.without_api.update(simulation.nodes)
    simulation.run(120)
    since_s = simulation.now
    simulation.kill(simulation.owner_of(simulation.keys[0]))
    simulation.run(5)

    assert simulation.longest_s(0, since_s) <= 1.05


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_that_alone_lost_the_api_gives_its_addresses_away_quietly(seed: int) -> None:
    simulation = started(seed)
    owner = simulation.owner_of(simulation.keys[0])
    since_s = simulation.now
    simulation.without_api.add(owner)
    simulation.run(100)

    assert owner not in {simulation.owner_of(key) for key in simulation.keys}
    assert simulation.longest_s(0, since_s) == 0
    assert simulation.longest_s(2, since_s) <= SAMPLE_S


def test_an_owner_whose_proxy_is_gone_keeps_answering_and_says_so() -> None:
    simulation = started(1)
    owner = simulation.owner_of(simulation.keys[0])
    since_s = simulation.now
    simulation.without_api.update(simulation.nodes)
    for name in simulation.nodes:
        simulation.tell(name, ProxyGone())
    simulation.run(100)
    state = simulation.nodes[owner].state

    assert simulation.moved(since_s) == []
    assert state is not None
    assert state.proxy_gone


def test_where_no_node_is_ready_by_the_api_owners_stay() -> None:
    simulation = started(1)
    since_s = simulation.now
    retable(simulation, {name: row(name, Why.NOT_READY) for name in simulation.nodes})
    simulation.run(30)

    assert simulation.moved(since_s) == []
    assert simulation.longest_s(0, since_s) == 0
    assert simulation.noted(Note.NOBODY_TAKES)


def test_a_member_that_says_goodbye_leaves_its_addresses_and_the_roster_at_once() -> None:
    simulation = started(0)
    owner = simulation.owner_of(simulation.keys[0])
    since_s = simulation.now
    simulation.tell(owner, StopAsked())
    simulation.run(1)

    assert simulation.longest_s(0, since_s) <= 0.2
    for name in others(simulation, owner):
        state = simulation.nodes[name].state
        assert state is not None
        assert len(state.wires[WIRE].roster) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_who_says_goodbye_in_the_middle_of_a_hand_over_ends_its_grace(seed: int) -> None:
    """A machine that shuts down stands for some seconds, and clients still ask its MAC until its heirs announce."""
    simulation = started(seed)
    key = simulation.keys[0]
    owner = simulation.owner_of(key)
    simulation.tell(owner, DrainAsked(DrainCause.SHUTDOWN))
    simulation.run(2)
    heir = simulation.owner_of(key)
    since_s = simulation.now
    simulation.tell(owner, StopAsked())
    simulation.run(0.2)

    assert (mine(simulation, owner, key), mine(simulation, heir, key)) == (Mine.NONE, Mine.HOLD)
    assert [name for at_s, name, what in simulation.announced if what == key and at_s > since_s] == [heir]


def test_a_dead_member_whose_node_is_deleted_counts_no_more_and_a_living_one_does() -> None:
    simulation = started(0)
    living, dead = others(simulation, "n1")
    simulation.kill(dead)
    simulation.run(5)
    since_s = simulation.now
    for name in ("n1", living):
        for gone in (living, dead):
            if gone != name:
                simulation.tell(name, MemberDeleted(member_id(NodeName(gone))))
    simulation.run(5)

    for name in ("n1", living):
        state = simulation.nodes[name].state
        assert state is not None
        assert len(state.wires[WIRE].roster) == 1, "two are left: the gateway is the second vote from now on"
    assert simulation.moved(since_s) == []


def test_members_of_old_and_new_formats_and_keys_agree_on_the_oldest_and_choose_the_same_owners() -> None:
    plain = started(4)
    mixed = Simulation(World(seed=4))
    node = mixed.nodes["n2"]
    node.settings = replace(node.settings, formats=(1, 2), keys=(1, 2))
    mixed.boot_all()
    state = node.state
    assert state is not None
    sent = [action for action in node.step(mixed.now + 0.3, DrainEnded()) if isinstance(action, Send)]
    beats = [action for action in sent if isinstance(action.message.body, Beat)]

    assert list(map(mixed.owner_of, mixed.keys)) == list(map(plain.owner_of, plain.keys))
    assert {(beat.format, beat.key_id) for beat in beats} == {(1, 1)}


def test_an_idle_member_sends_one_heartbeat_an_interval_on_each_channel() -> None:
    simulation = started(1)
    simulation.run(70)
    before = Counter(simulation.nodes["n1"].sent)
    simulation.run(60)
    sent = Counter(simulation.nodes["n1"].sent) - before

    assert set(sent) == {"Beat"}
    assert sent["Beat"] <= 2 * 60 / (DEFAULT.interval_s * 0.8)
