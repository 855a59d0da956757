"""One address answered for by several nodes: who answers whom, and who is told what when nodes come and go."""

from collections import Counter
from ipaddress import IPv4Address

import pytest
from msgspec.structs import replace

from endpointslice.types import IP
from proxy.l2.actions import Note
from proxy.l2.candidates import Why
from proxy.l2.clients import MOST_CLIENTS, PASSED_A_TICK
from proxy.l2.events import DrainAsked, LinkChanged
from proxy.l2.shares import Client, choose_sharer
from proxy.l2.spreading import JOIN_S
from proxy.l2.state import State
from proxy.l2.types import Tier
from tests.l2.clients import SharedWorld
from tests.l2.lan import GATEWAY, WIRE
from tests.l2.simulation import World
from tests.l2.stories import SEEDS, retable, row, rows

CLIENTS = [IP(f"192.0.2.{last}") for last in range(10, 70)]


def shared(seed: int, nodes: int = 3) -> SharedWorld:
    simulation = SharedWorld(World(seed=seed, nodes=nodes, vips=2), CLIENTS)
    simulation.boot_all(settle_s=8.0)
    simulation.ask_all()
    return simulation


def state_of(simulation: SharedWorld, name: str) -> State:
    state = simulation.nodes[name].state
    assert state is not None
    return state


@pytest.mark.parametrize("seed", SEEDS)
def test_each_client_is_answered_by_one_node_always_the_same_and_all_nodes_have_some(seed: int) -> None:
    simulation = shared(seed)

    first, again = simulation.ask_all(), simulation.ask_all()

    assert all(len(names) == 1 for names in first.values())
    assert first == again
    assert set(Counter(names[0] for names in first.values())) == {"n1", "n2", "n3"}
    assert simulation.announced == [], "a broadcast would bring everybody to one node"
    assert simulation.told == [], "nobody came or went"


@pytest.mark.parametrize("seed", SEEDS)
def test_when_a_node_dies_its_clients_are_told_by_unicast_and_nobody_else_is(seed: int) -> None:
    simulation = shared(seed)
    before = dict(simulation.entries)
    simulation.told.clear()

    simulation.kill("n2")
    simulation.run(4.0)

    lost = {place for place, name in before.items() if name == "n2"}
    assert lost
    assert {(tell.key, tell.client) for _at_s, _name, tell in simulation.told} == lost
    assert {place: name for place, name in simulation.entries.items() if place not in lost} == {
        place: name for place, name in before.items() if place not in lost
    }
    assert "n2" not in simulation.entries.values()
    assert {place: names[0] for place, names in simulation.ask_all().items()} == simulation.entries
    assert simulation.announced == []


def test_a_lost_nodes_clients_are_told_within_the_time_in_which_an_owner_is_replaced() -> None:
    simulation = shared(1)
    simulation.told.clear()
    killed_s = simulation.now

    simulation.kill("n1")
    simulation.run(4.0)

    firsts = {(tell.key, tell.client): at_s for at_s, _name, tell in reversed(simulation.told)}
    assert max(firsts.values()) - killed_s < 1.5


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_that_comes_back_is_given_its_part_once_it_has_listened(seed: int) -> None:
    simulation = shared(seed)
    before = simulation.ask_all()
    simulation.kill("n3")
    simulation.run(4.0)

    simulation.boot("n3")
    simulation.run(JOIN_S + 4.0)

    assert simulation.ask_all() == before
    assert {place: (name,) for place, name in simulation.entries.items()} == before


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_that_has_just_come_knows_all_clients_though_none_has_asked_since(seed: int) -> None:
    simulation = shared(seed)
    simulation.kill("n3")
    simulation.run(4.0)
    simulation.boot("n3")
    simulation.run(JOIN_S + 6.0)
    known = state_of(simulation, "n3").shares
    assert all(known[key].clients.keys() == {*CLIENTS} for key in simulation.keys)
    simulation.told.clear()

    before = dict(simulation.entries)
    simulation.kill("n1")
    simulation.run(4.0)

    lost = {place for place, name in before.items() if name == "n1"}
    assert {(tell.key, tell.client) for _at_s, _name, tell in simulation.told} == lost
    assert {name for _at_s, name, _tell in simulation.told} == {"n2", "n3"}, "each tells its own"
    assert "n1" not in simulation.entries.values()


def test_clients_are_passed_on_by_the_one_that_answered_them_and_twice() -> None:
    simulation = shared(1)
    simulation.kill("n3")
    simulation.run(4.0)
    for node in simulation.nodes.values():
        node.sent.clear()

    simulation.boot("n3")
    simulation.run(JOIN_S + 6.0)

    sent = {name: node.sent["Clients"] for name, node in simulation.nodes.items()}
    assert len(CLIENTS) < 2 * PASSED_A_TICK
    assert sent["n3"] == 0, "it knew nobody"
    assert 2 * len(simulation.keys) <= sent["n1"] + sent["n2"] <= 2 * 3 * len(simulation.keys)


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_cut_the_minority_answers_nobody_else_s_clients_while_it_comes_to_know_the_others(seed: int) -> None:
    simulation = shared(seed)
    simulation.isolate("n1")
    simulation.run(4.0)
    simulation.lan.heal()
    simulation.run(1.0)

    for _half in range(10):
        answers = simulation.ask_all()
        assert all(len(names) >= 1 for names in answers.values())
        assert {names for names in answers.values() if "n1" in names} <= {("n1",), ("n1", "n2"), ("n1", "n3")}
        few = sum("n1" in names for names in answers.values())
        assert few < len(answers) * 2 / 3, "no more than its part"
        simulation.run(0.5)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_api_outage_of_any_length_moves_no_client(seed: int) -> None:
    simulation = shared(seed)
    before = simulation.ask_all()
    simulation.told.clear()

    simulation.without_api.update(simulation.nodes)
    for _quarter in range(6):
        simulation.run(15.0)
        assert simulation.ask_all() == before
    for name in simulation.nodes:
        simulation.without_api.discard(name)
        simulation.run(0.5)
        assert simulation.ask_all() == before
    assert simulation.told == []


def test_a_node_whose_table_is_old_while_the_others_are_fresh_is_asked_by_nobody() -> None:
    simulation = shared(1)

    simulation.without_api.add("n2")
    simulation.run(75.0)

    assert set(simulation.ask_all().values()) == {("n1",), ("n3",)}


def test_under_policy_local_a_node_without_an_endpoint_answers_no_client_any_more() -> None:
    simulation = shared(2)
    retable(simulation, rows(simulation, n1=row("n1", Why.NO_LOCAL_ENDPOINT, Tier.NONE)), local=True, shared=True)
    simulation.run(2.0)

    assert set(simulation.ask_all().values()) == {("n2",), ("n3",)}


def test_a_node_that_drains_answers_no_client_any_more_and_its_clients_are_told() -> None:
    simulation = shared(2)

    simulation.tell("n1", DrainAsked())
    simulation.run(2.0)

    assert "n1" not in simulation.entries.values()
    assert set(simulation.ask_all().values()) == {("n2",), ("n3",)}


def test_who_has_a_new_mac_tells_its_own_clients() -> None:
    simulation = shared(2)
    simulation.told.clear()

    simulation.tell("n1", LinkChanged(WIRE, mac="mac-n1-new", gateway=IP(GATEWAY)))
    simulation.run(4.0)

    mine = {place for place, name in simulation.entries.items() if name == "n1"}
    assert {(tell.key, tell.client) for _at_s, name, tell in simulation.told} == mine
    assert {name for _at_s, name, _tell in simulation.told} == {"n1"}


def test_who_is_cut_off_from_the_majority_shares_no_more() -> None:
    simulation = shared(3)

    simulation.isolate("n1")
    simulation.run(4.0)

    assert all(not share.members for share in state_of(simulation, "n1").shares.values())
    everybody = Counter(name for names in simulation.ask_all().values() for name in names)
    assert {"n2", "n3"} <= set(everybody)


def test_without_a_second_node_the_owner_answers_all() -> None:
    simulation = shared(0)
    simulation.kill("n1")
    simulation.kill("n2")
    simulation.run(30.0)

    assert set(simulation.ask_all().values()) == {("n3",)}


def test_under_policy_local_a_node_is_asked_by_as_many_as_it_has_endpoints() -> None:
    simulation = shared(1)
    endpoints = {"n1": 6, "n2": 1, "n3": 1}
    there = {name: replace(row(name), ready=count) for name, count in endpoints.items()}
    retable(simulation, rows(simulation, **there), local=True, shared=True)
    simulation.run(4.0)

    asked = Counter(names[0] for names in simulation.ask_all().values())

    assert asked["n1"] > asked["n2"] + asked["n3"]


def test_a_router_is_told_of_once_by_each_node_with_its_mac() -> None:
    simulation = shared(1)
    for client in CLIENTS[:4]:
        simulation.ask(simulation.keys[0], client, "mac-router")
    simulation.ask(simulation.keys[0], CLIENTS[5], "mac-router")

    noted = simulation.noted(Note.SHARE_ROUTED)

    assert {one.report.detail for one in noted} == {"mac-router"}
    assert Counter(one.node for one in noted) == {"n1": 1, "n2": 1, "n3": 1}


def test_the_gateway_is_a_router_at_its_first_question() -> None:
    simulation = shared(1)

    simulation.ask(simulation.keys[0], IP(GATEWAY))

    assert len(simulation.noted(Note.SHARE_ROUTED)) == 3


def test_what_is_asked_for_and_contradicted_is_told_with_its_reason_and_has_one_owner() -> None:
    simulation = shared(1)
    retable(simulation, rows(simulation), not_shared="session-affinity")
    simulation.run(4.0)

    assert {one.report.detail for one in simulation.noted(Note.NOT_SHARED)} == {"session-affinity"}
    assert all(len(set(answers.values())) == 1 for answers in by_key(simulation).values())


def by_key(simulation: SharedWorld) -> dict[str, dict[IP, tuple[str, ...]]]:
    found: dict[str, dict[IP, tuple[str, ...]]] = {}
    for (key, client), names in simulation.ask_all().items():
        found.setdefault(key.vip, {})[client] = names
    return found


def test_only_so_many_clients_are_remembered_the_latest_ones() -> None:
    simulation = shared(1)
    key = simulation.keys[0]
    state = state_of(simulation, "n1")
    first = IPv4Address("10.20.0.0")
    crowd = {
        IP(str(first + at)): Client("mac", state.last_step_s - 1 + at / MOST_CLIENTS) for at in range(MOST_CLIENTS)
    }
    full = state.shares[key]._replace(clients=crowd)
    simulation.nodes["n1"].state = replace(state, shares={**state.shares, key: full})

    simulation.ask(key, IP("192.0.2.99"))

    clients = state_of(simulation, "n1").shares[key].clients
    assert len(clients) < MOST_CLIENTS
    assert IP("192.0.2.99") in clients
    assert next(reversed(crowd)) in clients


def test_every_member_knows_the_same_sharers() -> None:
    simulation = shared(2, nodes=5)
    for key in simulation.keys:
        chosen = {
            name: [choose_sharer(key, client, state_of(simulation, name).shares[key].members) for client in CLIENTS]
            for name in simulation.nodes
        }
        assert len({tuple(each) for each in chosen.values()}) == 1
