"""Processes that are woken late: what lies in their sockets is heard before anything is done."""

import pytest
from msgspec.structs import replace

from proxy.l2.actions import Note
from proxy.l2.types import DEFAULT
from tests.l2.node import Noted
from tests.l2.simulation import Simulation, World

CLOSE = replace(DEFAULT, rank_step_s=0.01)


@pytest.mark.parametrize("seed", range(20))
def test_who_wakes_late_in_an_election_hears_the_claim_before_it_takes(seed: int) -> None:
    """A busy machine: the others' turns come, their looks done, while the first one's claim lies in their sockets."""
    found = first_taken(seed)
    simulation = Simulation(World(seed=seed, vips=1, timing=CLOSE))
    simulation.boot_all(settle_s=found.at_s - simulation.now - 0.005)
    for name in simulation.nodes:
        if name != found.node:
            simulation.pause(name, 0.15)
    simulation.run(5)

    assert simulation.owner_of(simulation.keys[0]) == found.node
    assert [one.node for one in simulation.noted(Note.TAKEN)] == [found.node]
    assert simulation.longest_s(2, 0.0) == 0


def first_taken(seed: int) -> Noted:
    simulation = Simulation(World(seed=seed, vips=1, timing=CLOSE))
    simulation.boot_all()
    return simulation.noted(Note.TAKEN)[0]
