"""What is told to clients, what foreign hosts do, and what a node must have before it speaks."""

import math
from functools import partial
from itertools import pairwise

import pytest
from msgspec.structs import replace

from endpointslice.types import NodeName
from proxy.l2.actions import Action, Announce, Note, Probe
from proxy.l2.candidates import Table
from proxy.l2.events import ArpKind, ArpSeen, LinkChanged, MoveAsked, TableChanged
from proxy.l2.evidence import DEFEND_S, MAX_CONFLICTS, RATE_LIMIT_INTERVAL_S, find_foreign
from proxy.l2.hearing import FRESH_INTERVALS
from proxy.l2.messages import Claims, ClaimState
from proxy.l2.types import DEFAULT, Key, MemberId, Version, member_id
from tests.l2.lan import WIRE
from tests.l2.node import Node
from tests.l2.simulation import Simulation, World
from tests.l2.stories import SEEDS, others, retable, rows, started, word_of


def test_an_address_that_the_proxy_has_not_programmed_is_taken_by_nobody_until_it_is() -> None:
    simulation = Simulation(World(seed=1))
    for node in simulation.nodes.values():
        node.table = Table({key: replace(vip, programmed=False) for key, vip in node.table.vips.items()})
    for name in simulation.nodes:
        simulation.boot(name)
    simulation.run(10)
    assert all(names == () for names in simulation.answering.values())
    simulation.tell("n2", TableChanged(simulation.table_of("n2")))
    simulation.run(3)

    assert {simulation.owner_of(key) for key in simulation.keys} == {"n2"}


def test_an_address_in_no_subnet_of_a_node_is_never_that_nodes() -> None:
    simulation = Simulation(World(seed=1))
    for name in simulation.nodes:
        simulation.boot(name)
    for name in ("n1", "n3"):
        simulation.tell(name, LinkChanged(WIRE, gone=True))
    simulation.run(10)

    assert {simulation.owner_of(key) for key in simulation.keys} == {"n2"}


def answer_as_a_printer(simulation: Simulation, key: Key, left_s: float = math.inf) -> None:
    """A foreign host that has the address answers whoever asks, until it leaves."""
    for name in simulation.nodes:
        simulation.tell(name, ArpSeen(WIRE, ArpKind.REPLY, key.vip, "mac-printer", broadcast=False))
    if simulation.now < left_s:
        simulation.after(0.05, partial(answer_as_a_printer, simulation, key, left_s))


def test_an_address_that_a_foreign_host_has_is_not_taken_and_it_is_told() -> None:
    simulation = Simulation(World(seed=1))
    key = simulation.keys[0]
    for name in simulation.nodes:
        simulation.boot(name)

    answer_as_a_printer(simulation, key)
    simulation.run(10)

    assert simulation.answering[key] == ()
    assert simulation.owner_of(simulation.keys[1]) != ""
    assert {noted.report.detail for noted in simulation.noted(Note.ADDRESS_CONFLICT)} == {"mac-printer"}


def test_an_address_that_a_foreign_host_leaves_is_taken_within_seconds() -> None:
    simulation = Simulation(World(seed=1))
    key = simulation.keys[0]
    for name in simulation.nodes:
        simulation.boot(name)

    answer_as_a_printer(simulation, key, simulation.now + 30)
    simulation.run(30 + DEFEND_S - 1)
    assert simulation.answering[key] == ()

    simulation.run(3)

    assert len(simulation.answering[key]) == 1


def test_an_owner_defends_against_a_foreign_host_at_most_once_in_ten_seconds() -> None:
    simulation = started(1)
    key = simulation.keys[0]
    owner = simulation.owner_of(key)
    since_s = simulation.now - 0.01
    for tenth in range(90):
        seen = ArpSeen(WIRE, ArpKind.REPLY, key.vip, "mac-printer")
        simulation.after(tenth / 10, partial(simulation.tell, owner, seen))
    simulation.run(9)

    assert len(simulation.noted(Note.ADDRESS_CONFLICT, since_s)) == 1
    assert simulation.owner_of(key) == owner


class Printed(Simulation):
    """A foreign host has the first address, tells nobody, and answers who asks for it."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.probes: list[tuple[float, str]] = []
        self.has_left = False

    def _act(self, node: Node, actions: tuple[Action, ...] | list[Action]) -> None:
        super()._act(node, actions)
        key = self.keys[0]
        for action in actions:
            if isinstance(action, Probe) and action.key == key:
                self.probes.append((self.now, node.name))
                if not self.has_left:
                    seen = ArpSeen(WIRE, ArpKind.REPLY, key.vip, "mac-printer", broadcast=False)
                    self.after(0.001, partial(self.tell, node.name, seen))

    def attempts(self, name: str) -> list[float]:
        """When a node asked, those that are one attempt together."""
        times = [at_s for at_s, who in self.probes if who == name]
        return [at_s for before, at_s in pairwise([-math.inf, *times]) if at_s - before > 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_after_ten_attempts_that_a_foreign_host_answered_a_node_tries_once_a_minute(seed: int) -> None:
    simulation = Printed(World(seed=seed))
    for name in simulation.nodes:
        simulation.boot(name)
    simulation.run(MAX_CONFLICTS * DEFEND_S + 10 + 4 * RATE_LIMIT_INTERVAL_S)

    for name in simulation.nodes:
        gaps = [later - before for before, later in pairwise(simulation.attempts(name))]
        assert all(DEFEND_S <= gap < DEFEND_S + 2 for gap in gaps[: MAX_CONFLICTS - 1]), gaps
        assert all(RATE_LIMIT_INTERVAL_S <= gap < RATE_LIMIT_INTERVAL_S + 2 for gap in gaps[MAX_CONFLICTS - 1 :]), gaps
        assert len(gaps) >= MAX_CONFLICTS + 2
    assert simulation.answering[simulation.keys[0]] == ()
    state = next(iter(simulation.nodes.values())).state
    assert state is not None
    hold = state.holds[simulation.keys[0]]
    assert find_foreign(state.members.values(), hold, simulation.now) == "mac-printer", "also between two attempts"


def test_an_address_that_was_in_use_for_long_is_taken_within_a_minute_of_its_release() -> None:
    simulation = Printed(World(seed=2))
    key = simulation.keys[0]
    for name in simulation.nodes:
        simulation.boot(name)
    simulation.run(MAX_CONFLICTS * DEFEND_S + RATE_LIMIT_INTERVAL_S)

    simulation.has_left = True
    simulation.run(RATE_LIMIT_INTERVAL_S + 2)

    assert len(simulation.answering[key]) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_foreign_host_is_told_of_though_another_member_has_just_claimed_the_address(seed: int) -> None:
    simulation = started(seed)
    key = simulation.keys[0]
    owner = simulation.owner_of(key)
    node, other = simulation.nodes[owner], simulation.nodes[others(simulation, owner)[0]]
    assert node.state is not None
    member = node.state.members[other.id]
    stale = Claims((ClaimState(key, Version(0, other.id)),))
    since_s = simulation.now - 0.01

    simulation.tell(owner, word_of(member, stale, simulation.now))
    simulation.tell(owner, ArpSeen(WIRE, ArpKind.REPLY, key.vip, "mac-printer"))

    assert len(simulation.noted(Note.ADDRESS_CONFLICT, since_s)) == 1


def test_gratuitous_packets_outlast_a_locktime_and_come_once_a_minute_after() -> None:
    simulation = started(1)
    key = simulation.keys[0]
    taken_s = min(noted.at_s for noted in simulation.noted(Note.TAKEN) if noted.report.key == key)
    simulation.run(200)
    times = [at_s - taken_s for at_s, _name, what in simulation.announced if what == key]

    assert [round(at_s, 1) for at_s in times[:4]] == [0.0, 1.1, 2.2, 4.4]
    assert all(59 <= later - earlier <= 61.1 for earlier, later in pairwise(times[4:]))
    assert len(times) in {6, 7, 8}


@pytest.mark.parametrize("seed", SEEDS)
def test_stale_claims_are_answered_by_one_packet_a_second_at_most_besides_those_of_the_take(seed: int) -> None:
    """At a return every member may hold an old claim up to the owner."""
    simulation = Simulation(World(seed=seed))
    key = simulation.keys[0]
    simulation.boot_all(settle_s=1.0)
    while not simulation.owner_of(key):
        simulation.run(0.05)
    owner = simulation.owner_of(key)
    node, other = simulation.nodes[owner], simulation.nodes[others(simulation, owner)[0]]

    def claim(number: int) -> None:
        assert node.state is not None
        member = node.state.members[other.id]
        stale = Claims((ClaimState(key, Version(0, MemberId(number))),))
        simulation.tell(owner, word_of(member, stale, simulation.now))

    for number in range(1, 60):
        simulation.after(number / 10, partial(claim, number))
    simulation.run(8)
    times = [at_s for at_s, name, what in simulation.announced if (name, what) == (owner, key)]

    assert len(times) >= 5
    assert all(later - earlier >= 1 for earlier, later in zip(times, times[2:], strict=False))


@pytest.mark.parametrize("seed", SEEDS)
def test_an_owner_that_hears_nobody_repeats_no_packet_before_it_is_clear_who_is_cut_off(seed: int) -> None:
    """Else it would win its clients back from the one that replaced it."""
    simulation = Simulation(World(seed=seed))
    key = simulation.keys[0]
    simulation.boot_all(settle_s=1.0)
    while not simulation.owner_of(key):
        simulation.run(0.05)
    owner = simulation.owner_of(key)
    simulation.run(0.4)
    simulation.isolate(owner)
    cut_s = simulation.now
    simulation.run(5)
    times = [at_s - cut_s for at_s, name, what in simulation.announced if (name, what) == (owner, key)]

    assert max(times) <= FRESH_INTERVALS * DEFAULT.interval_s
    assert simulation.owner_of(key) in others(simulation, owner)
    assert len([at_s for at_s, name, what in simulation.announced if what == key and at_s > cut_s]) >= 3


def test_a_change_of_the_table_makes_nobody_announce() -> None:
    simulation = started(1)
    simulation.run(10)
    since_s = simulation.now
    before = len(simulation.announced)
    for _round in range(20):
        retable(simulation, rows(simulation))
        simulation.run(0.2)
    refreshed = {key for at_s, _name, key in simulation.announced if at_s > since_s}

    assert len(simulation.announced) - before == len(refreshed)


def test_a_new_mac_is_announced_at_once() -> None:
    simulation = started(1)
    key = simulation.keys[0]
    owner = simulation.owner_of(key)
    simulation.run(10)
    node = simulation.nodes[owner]
    assert node.state is not None
    actions = node.step(simulation.now, LinkChanged(WIRE, mac="mac-other", gateway=None))

    assert Announce(key, both=False) in actions


def test_an_address_asked_to_and_fro_moves_quietly_and_is_told_each_time() -> None:
    simulation = started(1)
    key = simulation.keys[0]
    since_s = simulation.now
    for _round in range(3):
        owner = simulation.owner_of(key)
        simulation.tell(owner, MoveAsked(key, member_id(NodeName(others(simulation, owner)[0]))))
        simulation.run(3)
    announced = [at_s for at_s, _name, what in simulation.announced if what == key and at_s > since_s]

    assert len(simulation.noted(Note.GIVEN, since_s)) == 3
    assert len(announced) <= 1  # a switch sees one change of MAC, after the grace time, not three
