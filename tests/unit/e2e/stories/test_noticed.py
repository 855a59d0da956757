from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.migration.load import Flow
from e2e.stories.noticed import Lasted, Noticed, Told, Window, find_windows, last, notice, render_told, without_windows
from e2e.world.clients import Outcome, Record

A, R, T = Outcome.ANSWERED, Outcome.REFUSED, Outcome.TIMED_OUT


def attempt(began: float, outcome: Outcome = A, took_s: float = 0.1) -> Record:
    return Record(0, began, took_s, outcome, "", "")


def test_failures_are_counted_by_kind_and_the_last_one_says_how_long_it_went_on() -> None:
    noticed = notice([attempt(9), attempt(10.5, R), attempt(11, T), attempt(12, took_s=0.6)], event_s=10)

    assert noticed == Noticed(4, {R: 1, T: 1}, slow=1, until_s=1.0)


def test_without_a_failure_it_went_on_for_no_time() -> None:
    assert notice([attempt(9), attempt(12)], event_s=10).until_s == 0.0


def test_a_flow_counts_once_however_often_it_had_no_answer() -> None:
    flows = [
        Flow("a@n", 9, 0, 0, ""),
        Flow("a@n", 9, 3, 0, ""),
        Flow("a@n", 9, 1, 0, "reset"),
        Flow("a@n", 9, 0, 2, ""),
    ]

    assert last(flows) == Lasted(flows=4, broken=1, silent=1, moved=1)


@pytest.mark.parametrize(
    ("records", "windows"),
    [
        pytest.param([attempt(1), attempt(2)], [], id="a server that is there is never away"),
        pytest.param([attempt(1), attempt(2, R), attempt(3)], [(1, 3.1)], id="away from answer to answer"),
        pytest.param([attempt(1), attempt(2, R)], [(1, float("inf"))], id="away for good"),
        pytest.param([attempt(2, R), attempt(3)], [(float("-inf"), 3.1)], id="not there yet"),
        pytest.param(
            [attempt(1), attempt(2, R), attempt(3), attempt(4, T), attempt(5)], [(1, 3.1), (3, 5.1)], id="away twice"
        ),
    ],
)
def test_when_a_server_was_away(records: Sequence[Record], windows: Sequence[Window]) -> None:
    assert find_windows(records) == list(windows)


@pytest.mark.parametrize(
    ("record", "excused"),
    [
        pytest.param(attempt(2, R), 1, id="failed meanwhile"),
        pytest.param(attempt(0.5, T, took_s=2), 1, id="begun before, failed meanwhile"),
        pytest.param(attempt(3.1, R), 1, id="met it a moment later"),
        pytest.param(attempt(4, R), 0, id="failed later"),
        pytest.param(attempt(0.5, R), 0, id="failed earlier"),
        pytest.param(attempt(2), 0, id="answered"),
    ],
)
def test_what_is_excused_by_a_server_that_was_away(record: Record, excused: int) -> None:
    assert without_windows([record], [(1.0, 3.0)]) == ([] if excused else [record], excused)


@given(st.lists(st.builds(attempt, st.floats(0, 100), st.sampled_from(Outcome)), max_size=30))
def test_a_servers_own_failures_are_all_excused_by_its_own_windows(records: list[Record]) -> None:
    ordered = sorted(records, key=lambda record: record.began)

    kept, excused = without_windows(ordered, find_windows(ordered))

    assert all(record.outcome is A for record in kept)
    assert len(kept) + excused == len(records)


def test_only_what_a_proxy_can_avoid_is_complained_about() -> None:
    told = Told(
        "closeby",
        "restart",
        new={
            "web": Noticed(9, {R: 2, T: 1}, 5, 1.0),
            "near": Noticed(9, {}, 5, 0.0),
            "gone": Noticed(9, {T: 9}, 0, 9.0),
        },
        lasting={"here": Lasted(4, 1, 1, 1), "gone": Lasted(4, 4, 0, 0)},
        doomed=("gone",),
    )

    assert told.complaints() == [
        "closeby, restart, web: 3 attempts failed",
        "closeby, restart, here: 3 lasting flows broke, fell silent or moved",
    ]


def test_only_outcomes_that_came_have_a_column_and_only_times_that_were_taken() -> None:
    told = [
        Told("kube-proxy", "lost", {"ClusterIPs": Noticed(1000, {T: 2}, 0, 1.25)}, {"here": Lasted(4, 1, 0, 0)}),
        Told("closeby", "lost", {"ClusterIPs": Noticed(1000, {}, 0, 0.0)}, {}, {"not Ready": 50.04}),
    ]

    assert render_told(told).splitlines() == [
        "| event | proxy | asked | new | failed | timed-out | slow | the last failure after, s |",
        "|---|---|---|---:|---:|---:|---:|---:|",
        "| lost | kube-proxy | ClusterIPs | 1,000 | 2 | 2 | 0 | 1.2 |",
        "| lost | closeby | ClusterIPs | 1,000 | 0 | 0 | 0 | - |",
        "",
        "| event | proxy | servers | lasting | broken | silent | moved |",
        "|---|---|---|---:|---:|---:|---:|",
        "| lost | kube-proxy | here | 4 | 1 | 0 | 0 |",
        "",
        "| event | proxy | not Ready, s |",
        "|---|---|---:|",
        "| lost | closeby | 50.0 |",
    ]
