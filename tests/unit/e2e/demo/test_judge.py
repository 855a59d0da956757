"""The demo's judge: a demo that can't fail shows nothing."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.demo.judge import SETTLE_S, Addresses, count_tries, judge_change, judge_tally
from e2e.demo.promises import Promise
from e2e.world.clients import Outcome, Record, Tally

OWN, NODE = "10.244.1.9", "172.30.0.11"
ADDRESSES = Addresses(frozenset({OWN}), frozenset({NODE}), "client")


def promise(*pods: str, verdict: str = "dnat", masqueraded: bool = False) -> Promise:
    return Promise(verdict, frozenset(pods), "same-zone", "zone-hints", masqueraded)


def tally(seen: dict[tuple[str, str], int], **ends: int) -> Tally:
    outcomes = Counter({Outcome[end.upper()]: n for end, n in ends.items()})
    if seen:
        outcomes[Outcome.ANSWERED] = sum(seen.values())
    return Tally(seen, outcomes, 0.001, 0.002)


A_AND_B = {("a", OWN): 60, ("b", OWN): 40}


@pytest.mark.parametrize(
    ("promised", "got", "complaints"),
    [
        pytest.param(promise("a", "b"), tally(A_AND_B), (), id="both promised pods answered"),
        pytest.param(promise("a"), tally(A_AND_B), ("b answered",), id="a pod answered that wasn't promised"),
        pytest.param(
            promise("a", "b"), tally({("a", OWN): 100}), ("b never answered",), id="a promised pod never answered"
        ),
        pytest.param(promise("a"), tally({("a", OWN): 99}, timed_out=1), ("1 timed-out",), id="one connection hung"),
        pytest.param(
            promise("a"), tally({("a", NODE): 9}), (f"a saw {NODE}",), id="masqueraded though kept was promised"
        ),
        pytest.param(
            promise("a", masqueraded=True), tally({("a", OWN): 9}), (f"a saw {OWN}",), id="kept though masqueraded"
        ),
        pytest.param(promise("a", masqueraded=True), tally({("a", NODE): 9}), (), id="masqueraded as promised"),
        pytest.param(promise("client"), tally({("client", NODE): 9}), (), id="a pod that asks itself sees its node"),
        pytest.param(promise(verdict="drop"), tally({}, timed_out=9), (), id="dropped as promised"),
        pytest.param(
            promise(verdict="drop"), tally({}, refused=9), ("9 refused",), id="refused though drop was promised"
        ),
        pytest.param(promise(verdict="reject"), tally({}, refused=9), (), id="refused as promised"),
        pytest.param(promise(verdict="reject"), tally({("a", OWN): 9}), ("9 answered",), id="answered though refused"),
    ],
)
def test_a_tally_is_judged_by_its_promise(promised: Promise, got: Tally, complaints: tuple[str, ...]) -> None:
    assert judge_tally(promised, got, ADDRESSES) == complaints


@given(st.integers(1, 40))
def test_with_so_many_tries_a_random_choice_misses_no_pod(pods: int) -> None:
    tries = count_tries(promise(*map(str, range(pods))))

    assert pods * (1 - 1 / pods) ** tries < 1e-9


def stream(*parts: tuple[float, float, str]) -> list[Record]:
    """An attempt every 10 ms from each part's begin to its end, answered by its pod; the write is at 0."""
    return [
        Record(0, begin + 0.01 * n, 0.001, Outcome.ANSWERED if pod else Outcome.TIMED_OUT, pod, OWN if pod else "")
        for begin, end, pod in parts
        for n in range(round((end - begin) / 0.01))
    ]


def test_a_clean_change_is_measured_from_the_write() -> None:
    change = judge_change((promise("a"), promise("b")), stream((-0.2, 0.05, "a"), (0.05, 0.5, "b")), 0.0, ADDRESSES)

    assert change.complaints == ()
    assert (change.before, change.after, change.failed) == ({"a": 20}, {"b": 45}, 0)
    assert change.last_old_s == pytest.approx(0.04)
    assert change.first_new_s == pytest.approx(0.05)


def test_a_change_is_not_late_for_a_machine_that_stood_still() -> None:
    records = stream((-0.2, 0.1, "a"), (SETTLE_S + 0.1, SETTLE_S + 0.2, "a"), (SETTLE_S + 0.2, SETTLE_S + 0.5, "b"))

    assert judge_change((promise("a"), promise("b")), records, 0.0, ADDRESSES).complaints == ()


def test_going_to_a_part_of_the_old_pods_shows_only_when_the_last_old_one_was() -> None:
    records = stream((-0.2, 0.03, "a"), (0.03, 0.05, "b"), (0.05, 0.06, "a"), (0.06, 0.5, "b"))

    change = judge_change((promise("a", "b"), promise("b")), records, 0.0, ADDRESSES)

    assert (change.first_new_s, change.complaints) == (None, ())
    assert change.last_old_s == pytest.approx(0.05)


def test_a_stream_that_nothing_changes_for_has_no_times() -> None:
    change = judge_change((promise("a"), promise("a")), stream((-0.2, 0.5, "a")), 0.0, ADDRESSES)

    assert (change.first_new_s, change.last_old_s, change.complaints) == (None, None, ())


@pytest.mark.parametrize(
    ("promises", "records", "complaint"),
    [
        pytest.param(
            (promise("a"), promise("b")),
            stream((-0.2, 1.3, "a")),
            "the old plan still after 1.3 s",
            id="it never changes",
        ),
        pytest.param((promise("a"), promise("a", "b")), stream((-0.2, 0.5, "a")), "b never answered", id="nor to more"),
        pytest.param(
            (promise("a"), promise("b")),
            stream((-0.2, 0.1, "a"), (0.1, 0.2, "c"), (0.2, 0.5, "b")),
            "after: c",
            id="a detour that no plan has",
        ),
        pytest.param(
            (promise("a"), promise("a")), stream((-0.2, -0.1, "b"), (0, 0.5, "a")), "before: b", id="wrong before"
        ),
        pytest.param(
            (promise("a"), promise("b")),
            stream((-0.2, 0.1, "a"), (0.1, SETTLE_S + 0.2, "b"), (SETTLE_S + 0.2, SETTLE_S + 0.21, "a")),
            "the old plan still after 1.2 s",
            id="a late relapse",
        ),
    ],
)
def test_a_change_that_goes_wrong_is_complained_of(
    promises: tuple[Promise, Promise], records: list[Record], complaint: str
) -> None:
    assert complaint in judge_change(promises, records, 0.0, ADDRESSES).complaints


def test_a_connection_without_an_answer_counts_as_failed_unless_a_plan_drops_it() -> None:
    hole = stream((-0.1, 0.1, "a"), (0.1, 0.12, ""), (0.12, 0.5, "b"))
    opening = stream((-0.1, 0.1, ""), (0.1, 0.5, "b"))

    between = judge_change((promise("a"), promise("b")), hole, 0.0, ADDRESSES)
    opened = judge_change((promise(verdict="drop"), promise("b")), opening, 0.0, ADDRESSES)

    assert (between.failed, between.complaints) == (2, ("after: timed-out",))
    assert (opened.failed, opened.complaints) == (0, ())
