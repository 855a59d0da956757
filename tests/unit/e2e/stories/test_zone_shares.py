import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.stories.zone_shares import (
    Place,
    Reach,
    Row,
    Second,
    Stage,
    Told,
    Visit,
    bin_visits,
    find_broken,
    find_place,
    render_table,
    see_visits,
    share,
    sum_stage,
)
from e2e.world.clients import Outcome, Record

ZONES = {"n1": "north", "n2": "north", "s1": "south"}
STAGE = Stage("scaled", began=10.0, settled=12.0, ended=14.0)


def answered(began: float, node: str) -> Record:
    return Record(0, began, 0.001, Outcome.ANSWERED, f"web-1@{node}", "10.0.0.1")


@pytest.mark.parametrize(
    ("node", "place"),
    [("n1", Place.NODE), ("n2", Place.ZONE), ("s1", Place.ELSEWHERE), (None, Place.FAILED)],
)
def test_a_server_is_placed_by_its_node_and_zone(node: str | None, place: Place) -> None:
    assert find_place(node, "n1", ZONES) is place


def test_the_best_place_is_that_of_the_nearest_endpoint_at_that_moment() -> None:
    reaches = [Reach(2.0, frozenset({"s1"})), Reach(3.0, frozenset({"s1", "n2"})), Reach(4.0, frozenset())]
    records = [answered(at, "s1") for at in (1.5, 2.5, 3.5, 4.5)]

    visits = see_visits(records, "n1", ZONES, reaches)

    assert [visit.best for visit in visits] == [Place.FAILED, Place.ELSEWHERE, Place.ZONE, Place.FAILED]
    assert {visit.place for visit in visits} == {Place.ELSEWHERE}


def test_a_visit_without_an_answer_failed() -> None:
    record = Record(0, 2.0, 2.0, Outcome.TIMED_OUT, "", "")

    assert see_visits([record], "n1", ZONES, [Reach(1.0, frozenset({"n1"}))]) == [Visit(2.0, Place.FAILED, Place.NODE)]


TIMES = st.floats(min_value=-2, max_value=7, allow_nan=False)
VISITS = st.builds(Visit, TIMES, st.sampled_from(Place), st.sampled_from(Place))


@given(st.lists(VISITS))
def test_every_visit_within_is_in_one_second(visits: list[Visit]) -> None:
    seconds = bin_visits(visits, 1.0, 4)

    assert len(seconds) == 4
    assert sum(sum(second.places.values()) for second in seconds) == sum(1.0 <= v.began < 5.0 for v in visits)
    assert all(second.near <= sum(second.places.values()) for second in seconds)


def test_a_stage_counts_from_its_change_to_its_end() -> None:
    places = [Place.ELSEWHERE, Place.NODE, Place.ZONE, Place.FAILED, Place.NODE]
    visits = [
        Visit(100 + at, place, Place.ZONE) for at, place in zip((9.9, 10.0, 11.0, 13.0, 14.0), places, strict=True)
    ]

    assert sum_stage(STAGE, visits, 100.0) == Row("scaled", visits=3, on_node=1, in_zone=2, near=3, failed=1)


@pytest.mark.parametrize(
    ("place", "best", "same_node", "words"),
    [
        pytest.param(Place.ZONE, Place.NODE, False, None, id="in the zone though the node has one"),
        pytest.param(Place.ZONE, Place.NODE, True, "left a node that had an endpoint", id="the same, by the node"),
        pytest.param(Place.ZONE, Place.ZONE, True, None, id="the node has none"),
        pytest.param(Place.ELSEWHERE, Place.ZONE, False, "left a zone that had endpoints", id="out of the zone"),
        pytest.param(Place.ELSEWHERE, Place.ELSEWHERE, True, None, id="the zone has none"),
        pytest.param(Place.FAILED, Place.ZONE, False, "failed", id="without an answer"),
    ],
)
def test_what_is_promised_once_a_stage_has_settled(
    place: Place, best: Place, words: str | None, *, same_node: bool
) -> None:
    visits = [Visit(11.0, Place.FAILED, Place.NODE), Visit(13.0, place, best)]

    broken = find_broken(STAGE, visits, 0.0, same_node=same_node)

    assert broken == ([f"scaled: 1 of 1 {words}"] if words else [])


def test_a_stage_without_a_connection_keeps_no_promise() -> None:
    assert find_broken(STAGE, [], 0.0, same_node=False) == ["scaled: no connection at all"]


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (1, 3, "33.3 %"),
        (3, 3, "100 %"),
        (0, 3, "0 %"),
        (99999, 100000, "99.9 %"),
        (1, 100000, "0.1 %"),
        (0, 0, "-"),
    ],
)
def test_a_share_is_rounded_neither_to_all_nor_to_nothing(part: int, whole: int, shown: str) -> None:
    assert share(part, whole) == shown


def test_a_table_tells_of_each_stage_as_a_whole_and_of_the_time_when_it_has_settled() -> None:
    stage = Stage("scaled", began=0.0, settled=0.5, ended=2.5)
    seconds = [Second({Place.ELSEWHERE: 9}, 0), Second({Place.NODE: 1, Place.ZONE: 2, Place.FAILED: 5}, 8)]
    rows = {"web": [Row("scaled", visits=1500, on_node=700, in_zone=1400, near=1500, failed=100)]}
    told = [Told(proxy, "", [stage], {"web": seconds}, rows, [], []) for proxy in ("kube-proxy", "closeby")]

    assert render_table("web", told).splitlines()[2:] == [
        "| scaled | kube-proxy | 1,500 | 100 | 50.0 % | 100 % | 100 % | 33.3 % | 100 % |",
        "| scaled | closeby | 1,500 | 100 | 50.0 % | 100 % | 100 % | 33.3 % | 100 % |",
    ]
