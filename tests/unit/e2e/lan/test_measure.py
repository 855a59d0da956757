"""What clients noticed, from what they wrote down."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.lan.measure import (
    Asked,
    Figure,
    Observed,
    Spread,
    Streamed,
    Window,
    count_doubles,
    count_lost,
    count_moves,
    longest_gap,
    measure,
    sole_owner,
    spread,
)

A, B = "02:00:00:00:00:0b", "02:00:00:00:00:0c"
WINDOW = Window(10.0, 20.0)


@pytest.mark.parametrize(
    ("moments", "gap"),
    [
        pytest.param([], 10.0, id="nothing at all is the whole window"),
        pytest.param([10.0, 12.0, 15.5, 19.0], 3.5, id="the longest of several"),
        pytest.param([16.0, 19.0], 6.0, id="from the fault until the first"),
        pytest.param([11.0, 12.0], 8.0, id="from the last until the end"),
        pytest.param([1.0, 12.0, 25.0], 8.0, id="what lies outside doesn't count"),
        pytest.param([19.0, 12.0, 15.0], 4.0, id="the order doesn't matter"),
    ],
)
def test_the_longest_gap(moments: list[float], gap: float) -> None:
    assert longest_gap(moments, WINDOW) == gap


@given(st.lists(st.floats(0, 30), max_size=20), st.floats(10, 20))
def test_one_more_answer_never_makes_a_gap_longer(moments: list[float], another: float) -> None:
    assert longest_gap([*moments, another], WINDOW) <= longest_gap(moments, WINDOW)


@given(st.lists(st.floats(10, 20), max_size=20))
def test_a_gap_is_one_of_those_between_neighbours(moments: list[float]) -> None:
    edges = sorted([10.0, *moments, 20.0])

    assert longest_gap(moments, WINDOW) in {later - earlier for earlier, later in pairwise(edges)}


@pytest.mark.parametrize(
    ("answers", "doubles"),
    [
        pytest.param([(1, 10.1, A), (2, 10.2, A)], 0, id="one owner"),
        pytest.param([(1, 10.1, A), (2, 10.2, B)], 0, id="a move between two questions"),
        pytest.param([(1, 10.1, A), (1, 10.1, A)], 0, id="one that says it twice"),
        pytest.param([(1, 10.1, A), (1, 10.3, B), (2, 10.2, B), (2, 10.2, A)], 2, id="two to each of two questions"),
        pytest.param([(9, 9.1, A), (9, 9.1, B)], 0, id="a question from before the fault"),
    ],
)
def test_two_answers_are_counted_by_question(answers: list[tuple[int, float, str]], doubles: int) -> None:
    assert count_doubles(answers, {1, 2}) == doubles


def test_a_datagram_is_lost_if_it_was_sent_in_the_window_and_never_answered() -> None:
    warm = Streamed([9.0, 11.0, 12.0, 13.0, 21.0], [(2, 12.5, "node-1")])

    assert count_lost(warm, WINDOW) == 2


@pytest.mark.parametrize(
    ("before", "inside", "moves"), [("", "", 0), ("", "a", 0), ("aba", "aab", 1), ("a", "bbab", 3)]
)
def test_moves_are_changes_of_who_answers_since_the_last_answer_before_the_window(
    before: str, inside: str, moves: int
) -> None:
    names = [*((9.0, name) for name in before), *((12.0, name) for name in inside), (21.0, "z")]

    assert count_moves(Streamed([], [(n, moment, name) for n, (moment, name) in enumerate(names)]), WINDOW) == moves


@pytest.mark.parametrize(
    ("answers", "owner"),
    [
        pytest.param([(0, 1.0, B), (1, 2.0, A), (2, 3.0, A)], A, id="alone since then"),
        pytest.param([(1, 2.0, A), (2, 3.0, B)], None, id="two, one after the other"),
        pytest.param([(2, 3.0, A)], None, id="one question unanswered"),
        pytest.param([], None, id="nobody"),
    ],
)
def test_a_sole_owner_answers_every_question_alone(answers: list[tuple[int, float, str]], owner: str | None) -> None:
    assert sole_owner(Asked([1.0, 2.0, 3.0], answers, []), since=1.5) == owner


def test_nobody_owns_what_nobody_asked_for() -> None:
    assert sole_owner(Asked([], [], []), since=0.0) is None


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        pytest.param(1, Spread(1.0, 1.0, 1.0, 1), id="one"),
        pytest.param(2, Spread(1.0, 2.0, 2.0, 2), id="two"),
        pytest.param(20, Spread(10.0, 19.0, 20.0, 20), id="twenty: the p95 isn't the longest"),
        pytest.param(100, Spread(50.0, 95.0, 100.0, 100), id="a hundred"),
    ],
)
def test_percentiles_are_samples_by_nearest_rank(count: int, expected: Spread) -> None:
    assert spread([float(number) for number in range(count, 0, -1)]) == expected


@given(st.lists(st.floats(0, 100), min_size=1))
def test_percentiles_are_ordered_samples(samples: list[float]) -> None:
    found = spread(samples)

    assert found.p50 <= found.p95 <= found.most == max(samples)
    assert {found.p50, found.p95} <= set(samples)


def test_a_move_of_two_seconds_is_measured_whole() -> None:
    """Node 1 answers until 12.0, nobody until 14.0, then node 2; node 1 comes back for the last question."""
    asked = [9.5 + 0.5 * number for number in range(20)]
    told = [(n, t, A if t <= 12.0 else B) for n, t in enumerate(asked) if not 12.0 < t < 14.0]
    cold = Asked(asked, [*told, (19, 19.1, A)], [(9.0, A), (14.0, B), (14.1, B)])
    served = [(n, t, "node-1" if mac == A else "node-2") for n, t, mac in told]

    figures = measure(Observed(cold, Streamed(asked, served), ("", "Connection reset by peer")), Window(10.0, 19.2))

    assert figures == {
        Figure.DARK: 2.0,
        Figure.LOST: 3.0,
        Figure.COLD: 2.0,
        Figure.TWO: 0.05,
        Figure.MOVES: 1.0,
        Figure.BROKEN: 1.0,
        Figure.ANNOUNCED: 2.0,
    }
