"""While an address is handed over, the old owner answers those that know it until the new one has told them."""

import pytest
from msgspec.structs import replace

from endpointslice.types import NodeName
from proxy.l2.events import DrainAsked, MoveAsked
from proxy.l2.machine import step
from proxy.l2.messages import Claims, ClaimState
from proxy.l2.state import State
from proxy.l2.types import DEFAULT, LATER, Key, MemberId, Mine, Version, member_id
from tests.l2.simulation import Simulation
from tests.l2.stories import SEEDS, mine, others, started, word_of


def hear(state: State, now: float, teller: MemberId, claim: ClaimState) -> State:
    """After the word of a member."""
    return step(state, now, word_of(state.members[teller], Claims((claim,)), now)).state


def offered(simulation: Simulation, key: Key) -> tuple[State, MemberId, MemberId]:
    """An owner that has offered the address to one and has no answer yet, that one, and the third."""
    owner = simulation.owner_of(key)
    state = simulation.nodes[owner].state
    assert state is not None
    heir, third = (member_id(NodeName(name)) for name in others(simulation, owner))
    return step(state, simulation.now, MoveAsked(key, heir)).state, heir, third


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("tellers", [("third",), ("third", "heir"), ("heir", "third"), ("heir",)], ids=" ".join)
def test_no_third_ones_word_ends_the_time_of_grace(seed: int, tellers: tuple[str, ...]) -> None:
    """It contradicts an old claim by what it knows, and doesn't know whether clients have been told."""
    simulation = started(seed)
    key = simulation.keys[0]
    state, heir, third = offered(simulation, key)
    claim = ClaimState(key, Version(state.holds[key].known.epoch + 1, heir), quiet=True)
    for number, teller in enumerate(tellers):
        said = claim if teller == "heir" else replace(claim, quiet=False)
        state = hear(state, simulation.now + number / 1000, heir if teller == "heir" else third, said)

    hold = state.holds[key]
    assert (hold.owner, hold.mine) == (heir, Mine.LINGER)
    assert simulation.now + state.settings.grace_s <= hold.until_s < LATER


@pytest.mark.parametrize("told", [("heir",), ("third", "heir")], ids=" ".join)
def test_the_new_owners_own_word_does(told: tuple[str, ...]) -> None:
    simulation = started(0)
    key = simulation.keys[0]
    state, heir, third = offered(simulation, key)
    claim = ClaimState(key, Version(state.holds[key].known.epoch + 1, heir))
    for teller in told:
        state = hear(state, simulation.now, heir if teller == "heir" else third, claim)

    assert state.holds[key].mine is Mine.LINGER
    assert state.holds[key].until_s <= simulation.now + 2 * DEFAULT.interval_s


@pytest.mark.parametrize("seed", range(20))
def test_a_drained_node_goes_on_answering_for_the_time_of_grace(seed: int) -> None:
    simulation = started(seed)
    key = simulation.keys[0]
    owner = simulation.owner_of(key)
    simulation.tell(owner, DrainAsked())
    simulation.run(25)

    assert mine(simulation, owner, key) is Mine.LINGER
