"""Random failures on a simulated LAN, and then none: 200 seeds by default, CLOSEBY_SEEDS times as many on request.

A seed that fails is printed with the command that plays it again.
"""

import os

import pytest
from msgspec.structs import replace

from proxy.l2.types import DEFAULT, FAST, Timing
from tests.l2.checks import BrokenError
from tests.l2.fuzz import Outcome, Variant, play, world_of
from tests.l2.simulation import World

TIMES = max(1, int(os.environ.get("CLOSEBY_SEEDS", "200")) // 200)
CROWDED = replace(DEFAULT, crowd=1)
SEEDS = [
    *((3, seed, DEFAULT) for seed in range(100 * TIMES)),
    *((3, seed, FAST) for seed in range(1000, 1000 + 20 * TIMES)),
    *((5, seed, DEFAULT) for seed in range(60 * TIMES)),
    *((9, seed, DEFAULT) for seed in range(20 * TIMES)),
    *((nodes, seed, CROWDED) for nodes in (3, 5) for seed in range(2000, 2000 + 20 * TIMES)),
]
VARIANTS: list[tuple[int, int, Variant]] = [
    (3, seed, variant) for variant in Variant if variant is not Variant.PLAIN for seed in range(15 * TIMES)
]
VARIANTS += [(2, seed, Variant.PLAIN) for seed in range(15 * TIMES)]  # the gateway has the second vote
LONGEST_TWO_S = 1.5  # cuts upon cuts, with restarts that know nothing, and a gateway


@pytest.mark.parametrize(("nodes", "seed", "timing"), SEEDS)
def test_after_random_failures_each_address_has_one_owner_again(nodes: int, seed: int, timing: Timing) -> None:
    again = f"python -m tests.l2.fuzz --nodes {nodes} --seed {seed} --crowd {timing.crowd}"
    again += " --profile fast" if timing is FAST else ""
    play_and_judge(world_of(seed, nodes, timing), Variant.PLAIN, again)


@pytest.mark.parametrize(("nodes", "seed", "variant"), VARIANTS)
def test_so_it_has_while_keys_change_behind_isolated_ports_on_two_wires_and_of_two_nodes(
    nodes: int, seed: int, variant: Variant
) -> None:
    again = f"python -m tests.l2.fuzz --nodes {nodes} --seed {seed} --variant {variant}"
    play_and_judge(world_of(seed, nodes, variant=variant), variant, again)


def play_and_judge(world: World, variant: Variant, again: str) -> None:
    try:
        outcome = play(world, variant)
    except BrokenError as error:
        pytest.fail(f"{error}; again: {again}")

    assert all(len(names) == 1 for names in outcome.simulation.answering.values()), again
    assert outcome.settled_in_s <= bound_s(world.timing), again
    assert outcome.longest_two_s <= LONGEST_TWO_S or not world.gateway, again
    assert moves_in_bounds(outcome), again


def bound_s(timing: Timing) -> float:
    """Invariant 7: D + 12 W + 2 I; what lost its owner to a restart that knows nothing waits for members to settle."""
    return timing.detect_s + 12 * timing.rank_step_s + 2 * timing.interval_s + timing.settle_s


def moves_in_bounds(outcome: Outcome) -> bool:
    """Invariant 12: a failure moves no more than all addresses, there and back."""
    first = len(outcome.simulation.keys)
    return len(outcome.simulation.moves) <= first + 2 * first * outcome.failures
