"""The collector is slowed before the first lists, and what is there after the first sync is left alone."""

import gc
from collections.abc import Iterator

import pytest

from proxy.memory import prepare_memory, settle_memory


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """The collector is afterwards as it was."""
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_the_collector_looks_at_the_young_less_often_than_by_default() -> None:
    before = gc.get_threshold()

    prepare_memory()

    assert gc.get_threshold() > before


@pytest.mark.parametrize("settle", [prepare_memory, settle_memory], ids=["before the lists", "after the first sync"])
def test_what_is_there_is_never_collected_again(settle: object) -> None:
    assert callable(settle)
    kept = [object() for _ in range(10)], {}

    settle()

    assert gc.get_freeze_count() > 0
    assert not any(one is kept for one in gc.get_objects())


def test_cycles_of_the_lists_are_freed_before_the_rest_is_kept() -> None:
    gc.collect()
    cycle: list[object] = []
    cycle.append(cycle)
    del cycle

    settle_memory()

    assert gc.collect() == 0
