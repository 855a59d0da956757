"""For which Nodes NotReady counts: never because the API server's way to the nodes is broken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import NodeName
from proxy.addresses.types import NodeState
from proxy.announcer.readiness import NOT_READY_S, Readiness, watch_readiness

NAMES = [NodeName(f"n{number}") for number in range(1, 6)]


def nodes(*unready: str, of: int = 3) -> list[NodeState]:
    return [NodeState(name, ready=name not in unready) for name in NAMES[:of]]


def watch(*looks: tuple[float, list[NodeState]], connected: bool = True) -> Readiness:
    found = Readiness()
    for now, seen in looks:
        found = watch_readiness(found, seen, now, connected=connected)
    return found


def test_not_ready_counts_after_half_a_minute() -> None:
    assert not watch((0.0, nodes("n1")), (NOT_READY_S - 1, nodes("n1"))).lost
    assert watch((0.0, nodes("n1")), (NOT_READY_S, nodes("n1"))).lost == {"n1"}


def test_a_node_that_was_ready_in_between_begins_anew() -> None:
    assert not watch((0.0, nodes("n1")), (20.0, nodes()), (25.0, nodes("n1")), (50.0, nodes("n1"))).lost


def test_a_node_that_is_ready_again_counts_at_once() -> None:
    assert not watch((0.0, nodes("n1")), (NOT_READY_S, nodes("n1")), (NOT_READY_S, nodes())).lost


def test_of_two_nodes_one_may_be_lost() -> None:
    assert watch((0.0, nodes("n1", of=2)), (NOT_READY_S, nodes("n1", of=2))).lost == {"n1"}


def test_where_most_nodes_are_not_ready_none_counts() -> None:
    assert not watch((0.0, nodes("n1", "n2")), (99.0, nodes("n1", "n2"))).lost


def test_what_counted_before_most_were_lost_still_does() -> None:
    first = watch((0.0, nodes("n1")), (NOT_READY_S, nodes("n1")))

    assert watch_readiness(first, nodes("n1", "n2", "n3"), 99.0, connected=True).lost == {"n1"}


def test_time_without_a_watch_is_no_time() -> None:
    found = watch_readiness(watch((0.0, nodes("n1"))), nodes("n1"), 99.0, connected=False)

    assert not watch_readiness(found, nodes("n1"), 100.0, connected=True).lost
    assert watch_readiness(found, nodes("n1"), 99.0 + NOT_READY_S, connected=True).lost == {"n1"}


@pytest.mark.parametrize("connected", [True, False])
def test_nodes_that_come_back_one_by_one_after_an_outage_are_never_lost(connected: bool) -> None:  # noqa: FBT001
    found = Readiness()
    for now in (0.0, 300.0):
        found = watch_readiness(found, nodes("n1", "n2", "n3", "n4", "n5", of=5), now, connected=connected)
    for second, ready in enumerate(range(1, 6)):
        seen = nodes(*NAMES[ready:], of=5)
        found = watch_readiness(found, seen, 301.0 + 5 * second, connected=True)
        assert not found.lost


@given(st.lists(st.tuples(st.floats(0, 60), st.frozensets(st.sampled_from(NAMES)), st.booleans()), max_size=20))
def test_nobody_becomes_lost_without_half_a_minute_of_watching_and_half_of_the_others(
    looks: list[tuple[float, frozenset[NodeName], bool]],
) -> None:
    found, now, doubted_s = Readiness(), 0.0, 0.0
    for pause, unready, connected in looks:
        before, now = found, now + pause
        if not connected or len(unready) * 2 > len(NAMES):
            doubted_s = now
        found = watch_readiness(found, nodes(*unready, of=5), now, connected=connected)
        assert found.lost <= unready
        for node in found.lost - before.lost:
            assert now - doubted_s >= NOT_READY_S
            assert now - before.since_s[node] >= NOT_READY_S
