"""The collector is slowed before the first lists, and what is there after the first sync is left alone."""

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from proxy.memory import prepare_memory, settle_memory

PYTHONS_THRESHOLDS = (700, 10, 10)  # of Python 3.11


class Cycle:
    """May refer to itself."""

    end: "Cycle | None" = None


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """The collector is as Python starts it, whatever ran before here, and afterwards as it was."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*PYTHONS_THRESHOLDS)
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_the_collector_looks_at_the_young_less_often_than_by_default() -> None:
    prepare_memory()

    assert gc.get_threshold() > PYTHONS_THRESHOLDS


@pytest.mark.parametrize("settle", [prepare_memory, settle_memory], ids=["before the lists", "after the first sync"])
def test_what_is_there_is_never_collected_again(settle: Callable[[], None]) -> None:
    kept = Cycle()

    settle()

    assert gc.get_freeze_count() > 0
    assert not any(one is kept for one in gc.get_objects())


def test_cycles_of_the_lists_are_freed_before_the_rest_is_kept() -> None:
    cycle = Cycle()
    cycle.end = cycle
    left = weakref.ref(cycle)
    del cycle

    settle_memory()

    assert left() is None
