"""Hundreds of addresses: what a step costs is counted in calls, as seconds differ from machine to machine."""

import sys
from collections import Counter
from types import FrameType
from typing import Self

import pytest

from proxy.l2.machine import MOST_CHANGES
from proxy.l2.state import State, hand_over
from proxy.l2.types import NOBODY, Key, MemberId
from tests.l2.simulation import Simulation, World

IDLE_S = 20.0
SETTLED_S = 70.0  # after it nobody is a returner any more
FEW, MANY = 3, 600
RULES = ("put_hold", "review", "consider", "must_wait", "rank", "spread", "choose_heirs", "_deal", "state_of")


class Unwatched(Simulation):
    """No client asks or looks, which here would take most of the time."""

    def _ask(self) -> None:
        pass

    def _sample(self) -> None:
        pass


class Calls:
    """How often each of Python's functions is called while it is open, by name."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()

    def __enter__(self) -> Self:
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _count(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            self.counted[frame.f_code.co_name] += 1


def settled(vips: int, seed: int = 1) -> Simulation:
    simulation = Unwatched(World(seed=seed, vips=vips))
    simulation.boot_all(settle_s=SETTLED_S)
    return simulation


def owners(simulation: Simulation) -> dict[Key, set[str]]:
    return {key: {name for name, node in simulation.nodes.items() if node.owns(key)} for key in simulation.keys}


def idle_calls(vips: int) -> Counter[str]:
    simulation = settled(vips)
    with Calls() as calls:
        simulation.run(IDLE_S)
    return calls.counted


def test_while_nothing_happens_addresses_cost_what_they_are_announced_anew_once_a_minute() -> None:
    few, many = idle_calls(FEW), idle_calls(MANY)

    refreshes = round(MANY * IDLE_S / 60 * 1.5)
    assert {rule: many[rule] for rule in RULES if many[rule] > few[rule] + 2 * refreshes} == {}
    assert many.total() < few.total() * 1.25


def test_all_addresses_are_taken_though_a_step_changes_only_so_many() -> None:
    owned = owners(settled(MANY))

    assert MANY > MOST_CHANGES
    assert all(len(names) == 1 for names in owned.values())
    shares = Counter(names.pop() for names in owned.values())
    assert max(shares.values()) - min(shares.values()) <= MANY // 10


def test_a_lost_owners_addresses_are_all_taken_by_the_heirs_that_it_named() -> None:
    simulation = settled(MANY)
    lost = simulation.nodes["n1"]
    assert lost.state is not None
    named = {key: lost.state.holds[key].heirs.first for key in simulation.keys if lost.owns(key)}

    simulation.kill("n1")
    simulation.run(3.0)

    assert len(named) > MANY // 4
    assert {key: simulation.by_id[heir].name for key, heir in named.items()} == {
        key: name for key, names in owners(simulation).items() if key in named for name in names
    }


def counted(state: State) -> dict[MemberId, set[Key]]:
    found: dict[MemberId, set[Key]] = {}
    for hold in state.holds.values():
        if hold.owner != NOBODY:
            found.setdefault(hold.owner, set()).add(hold.key)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_who_owns_what_is_known_by_member_as_by_address(seed: int) -> None:
    simulation = settled(FEW, seed)
    simulation.kill("n2")
    simulation.run(4.0)
    simulation.boot("n2")
    simulation.run(4.0)
    simulation.isolate("n3")
    simulation.run(10.0)

    for node in simulation.nodes.values():
        assert node.state is not None
        assert node.state.owned == counted(node.state)
        assert hand_over(node.state).owned == node.state.owned
