"""Random worlds are examples of everything that the two proxies are to be compared in."""

from collections import Counter
from functools import cache

import pytest

from e2e.differential.generate import make_world
from e2e.differential.kinds import Kind, list_kinds

WORLDS = 500
LEAST = WORLDS // 20


@cache
def count_kinds() -> Counter[Kind]:
    return Counter(kind for seed in range(WORLDS) for kind in list_kinds(make_world(seed)))


@pytest.mark.parametrize("kind", Kind)
def test_one_world_in_twenty_is_an_example_of(kind: Kind) -> None:
    assert count_kinds()[kind] >= LEAST
