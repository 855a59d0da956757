"""Where addresses belong: tables that change, pods that move, preferences, and balance."""

from collections import Counter

import pytest

from endpointslice.types import NodeName
from proxy.l2.actions import Note
from proxy.l2.candidates import Table, Vip, Why
from proxy.l2.events import MoveAsked
from proxy.l2.types import Tier, member_id
from tests.l2.simulation import SAMPLE_S, Simulation, World
from tests.l2.stories import SEEDS, others, retable, row, rows, started


@pytest.mark.parametrize("seed", range(12))
def test_three_addresses_that_start_on_three_nodes_end_as_one_each(seed: int) -> None:
    simulation = started(seed, vips=3)

    assert Counter(map(simulation.owner_of, simulation.keys)) == Counter({"n1": 1, "n2": 1, "n3": 1})


def test_three_addresses_of_the_first_node_up_end_as_one_each_without_a_gap() -> None:
    simulation = Simulation(World(seed=5, vips=3))
    simulation.boot("n1")
    simulation.run(6)
    since_s = simulation.now
    simulation.boot("n2")
    simulation.boot("n3")
    simulation.run(120)

    assert Counter(map(simulation.owner_of, simulation.keys)) == Counter({"n1": 1, "n2": 1, "n3": 1})
    assert simulation.longest_s(0, since_s) == 0
    assert simulation.longest_s(2, since_s) <= SAMPLE_S


@pytest.mark.parametrize("seed", range(6))
def test_addresses_of_two_wires_or_families_that_one_node_has_end_as_one_each_and_stay(seed: int) -> None:
    """A load is that of all wires, so one less on each would be two less, and they would go round for ever."""
    simulation = Simulation(World(seed, vips=2, wires=2, separate=True))
    simulation.boot("n1")
    simulation.run(6)
    simulation.boot("n2")
    simulation.boot("n3")
    simulation.run(200)

    assert len(simulation.noted(Note.GIVEN)) == 1
    assert len({simulation.owner_of(key) for key in simulation.keys}) == len(simulation.keys)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "why",
    [
        *(Why.OUT_OF_SERVICE, Why.NOT_READY, Why.CORDONED, Why.EXCLUDED, Why.LEAVING, Why.NO_NODE),
        *(Why.NO_ADVERTISEMENT, Why.PINNED_ELSEWHERE, Why.OTHER_INTERFACE, Why.UNKNOWN_INTERFACE),
    ],
)
def test_an_owner_that_may_not_own_any_more_gives_its_addresses_away(seed: int, why: Why) -> None:
    simulation = started(seed)
    owner = simulation.owner_of(simulation.keys[0])
    since_s = simulation.now
    retable(simulation, rows(simulation, **{owner: row(owner, why)}))
    simulation.run(5)

    assert owner not in {simulation.owner_of(key) for key in simulation.keys}
    assert simulation.longest_s(0, since_s) == 0
    assert simulation.longest_s(2, since_s) <= SAMPLE_S


@pytest.mark.parametrize("why", [Why.NO_ADVERTISEMENT, Why.PINNED_ELSEWHERE, Why.OTHER_INTERFACE])
def test_an_address_that_no_node_may_have_is_answered_for_ten_seconds_more(why: Why) -> None:
    simulation = started(0)
    since_s = simulation.now
    retable(simulation, {name: row(name, why) for name in simulation.nodes})
    simulation.run(9)
    assert simulation.longest_s(0, since_s) == 0

    simulation.run(5)

    assert all(simulation.answering[key] == () for key in simulation.keys)
    retable(simulation, rows(simulation))
    simulation.run(5)
    assert all(len(simulation.answering[key]) == 1 for key in simulation.keys)


@pytest.mark.parametrize("why", [Why.EXCLUDED, Why.OUT_OF_SERVICE, Why.CORDONED, Why.LEAVING, Why.NO_NODE])
def test_where_every_node_is_in_a_bad_state_owners_stay(why: Why) -> None:
    simulation = started(0)
    since_s = simulation.now
    retable(simulation, {name: row(name, why) for name in simulation.nodes})
    simulation.run(30)

    assert simulation.moved(since_s) == []
    assert simulation.longest_s(0, since_s) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_under_policy_local_an_address_follows_its_pods_and_ends_with_the_last(seed: int) -> None:
    simulation = started(seed)
    for place in ("n2", "n3"):
        since_s = simulation.now
        retable(
            simulation,
            {n: row(n) if n == place else row(n, Why.NO_LOCAL_ENDPOINT, Tier.NONE) for n in simulation.nodes},
            local=True,
        )
        simulation.run(3)
        assert {simulation.owner_of(key) for key in simulation.keys} == {place}
        assert simulation.longest_s(0, since_s) <= 1.0
    retable(simulation, {n: row(n, Why.NO_LOCAL_ENDPOINT, Tier.NONE) for n in simulation.nodes}, local=True)
    simulation.run(3)

    assert all(simulation.answering[key] == () for key in simulation.keys)


@pytest.mark.parametrize("seed", SEEDS)
def test_under_policy_local_a_node_with_only_a_draining_pod_gives_way_to_a_ready_one(seed: int) -> None:
    simulation = started(seed)
    owner = simulation.owner_of(simulation.keys[0])
    since_s = simulation.now
    retable(simulation, rows(simulation, **{owner: row(owner, tier=Tier.DRAINING)}), local=True)
    simulation.run(3)

    assert owner not in {simulation.owner_of(key) for key in simulation.keys}
    assert simulation.longest_s(0, since_s) == 0


def test_under_policy_local_a_node_whose_pods_all_drain_stays_where_nobody_is_ready() -> None:
    simulation = started(0)
    since_s = simulation.now
    retable(simulation, {name: row(name, tier=Tier.DRAINING) for name in simulation.nodes}, local=True)
    simulation.run(10)

    assert simulation.moved(since_s) == []


def test_under_policy_cluster_a_rollout_moves_nothing() -> None:
    simulation = started(0)
    since_s = simulation.now
    for place in ("n1", "n2", "n3", "n1"):
        retable(simulation, {n: row(n, tier=Tier.READY if n == place else Tier.NONE) for n in simulation.nodes})
        simulation.run(20)

    assert simulation.moved(since_s) == []


def test_with_prefer_close_an_address_goes_to_a_node_with_a_pod_after_a_minute() -> None:
    simulation = started(0)
    since_s = simulation.now
    tiers = {n: row(n, tier=Tier.READY if n == "n2" else Tier.NONE) for n in simulation.nodes}
    retable(simulation, tiers, prefer_close=True)
    simulation.run(50)
    assert simulation.moved(since_s) == []
    simulation.run(30)

    assert {simulation.owner_of(key) for key in simulation.keys} == {"n2"}
    assert simulation.longest_s(0, since_s) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_with_prefer_close_an_unowned_address_goes_to_a_node_with_a_ready_endpoint(seed: int) -> None:
    simulation = Simulation(World(seed=seed))
    for name, node in simulation.nodes.items():
        tiers = {n: row(n, tier=Tier.READY if n == "n3" else Tier.NONE) for n in simulation.nodes}
        rest = tuple(each for other, each in tiers.items() if other != name)
        node.table = Table({key: Vip(key, tiers[name], rest, prefer_close=True) for key in simulation.keys})
    simulation.boot_all()

    assert {simulation.owner_of(key) for key in simulation.keys} == {"n3"}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_preferred_node_gets_its_addresses_loses_them_with_its_life_and_gets_them_back_quietly(seed: int) -> None:
    simulation = started(seed)
    wishes = rows(simulation, n3=row("n3", preference=50))
    simulation.run(60)
    retable(simulation, wishes)
    simulation.run(40)
    assert {simulation.owner_of(key) for key in simulation.keys} == {"n3"}
    simulation.kill("n3")
    simulation.run(5)
    assert "n3" not in {simulation.owner_of(key) for key in simulation.keys}
    since_s = simulation.now
    simulation.boot("n3")
    simulation.run(120)

    assert {simulation.owner_of(key) for key in simulation.keys} == {"n3"}
    assert simulation.longest_s(0, since_s) == 0
    assert simulation.longest_s(2, since_s) <= SAMPLE_S


def test_an_address_is_moved_by_hand() -> None:
    simulation = started(0)
    key = simulation.keys[0]
    owner = simulation.owner_of(key)
    target = others(simulation, owner)[0]
    since_s = simulation.now
    simulation.tell(owner, MoveAsked(key, member_id(NodeName(target))))
    simulation.run(2)

    assert simulation.owner_of(key) == target
    assert simulation.longest_s(0, since_s) == 0
