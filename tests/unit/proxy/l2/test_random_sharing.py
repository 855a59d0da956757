"""Random failures where several nodes share addresses: each client has one node that answers it, and knows which.

CLOSEBY_SEEDS plays more of them, as for addresses of one owner.
"""

import os

import pytest

from proxy.l2.types import DEFAULT
from tests.l2.shared_fuzz import SharedOutcome, play_calm, play_wild

TIMES = max(1, int(os.environ.get("CLOSEBY_SEEDS", "200")) // 200)
LONGEST_NONE_S = DEFAULT.detect_s + 2 * DEFAULT.interval_s  # as long as a loss takes to be noticed
LONGEST_TWO_S = 2 * DEFAULT.interval_s  # while one hasn't heard yet that another answers its part, or is back


@pytest.mark.parametrize(("nodes", "seed"), [(3, seed) for seed in range(6 * TIMES)] + [(5, 100)])
def test_on_a_healthy_wire_two_answer_a_client_in_a_hand_over_only_and_none_until_a_loss_is_noticed(
    nodes: int, seed: int
) -> None:
    outcome = play_calm(seed, nodes)

    again = f"python -m tests.l2.shared_fuzz --calm --nodes {nodes} --seed {seed}"
    assert outcome.longest_two_s <= LONGEST_TWO_S, again
    assert outcome.longest_none_s <= LONGEST_NONE_S, again
    judge_the_end(outcome, again)


@pytest.mark.parametrize(("nodes", "seed"), [(3, seed) for seed in range(10 * TIMES)] + [(5, 100), (5, 101)])
def test_after_random_failures_each_client_is_answered_by_its_own_node_again(nodes: int, seed: int) -> None:
    judge_the_end(play_wild(seed, nodes), f"python -m tests.l2.shared_fuzz --nodes {nodes} --seed {seed}")


def judge_the_end(outcome: SharedOutcome, again: str) -> None:
    assert outcome.astray == (), again
