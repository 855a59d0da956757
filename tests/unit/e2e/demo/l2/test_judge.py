"""The judge of `make demo-l2`: a demo that can't fail shows nothing."""

import pytest

from e2e.demo.l2.judge import Asked, Fate, Wanted, judge_asked, judge_moved, share
from e2e.lan.measure import Window
from e2e.world.clients import Outcome, Record

NEAR = Wanted(frozenset({"a", "b"}), near=True)
ANYWHERE = Wanted(frozenset({"a", "b"}), near=False)
KEPT = Wanted(frozenset({"a", "b"}), near=False, on=frozenset({"c"}))
NODES = {"web-a": "a", "web-b": "b"}
STEP_S = 0.01
WINDOW = Window(1.0, 3.0)


def asked(owners: str, failed: int = 0, **answers: int) -> Asked:
    return Asked(frozenset(owners.split()), answers, failed)


@pytest.mark.parametrize(
    ("wanted", "seen", "complaints"),
    [
        pytest.param(NEAR, asked("a", a=200), (), id="the owner's own pod answers"),
        pytest.param(ANYWHERE, asked("a", a=90, b=110), (), id="pods of both nodes answer"),
        pytest.param(NEAR, asked("a", a=199, b=1), ("b answered",), id="a pod further away than promised"),
        pytest.param(ANYWHERE, asked("a", a=200), ("b never answered",), id="a pod that never answers"),
        pytest.param(NEAR, asked("a", 3, a=197), ("3 without an answer",), id="some aren't answered"),
        pytest.param(NEAR, asked("", 200), ("nobody announces it", "200 without an answer"), id="nobody is there"),
        pytest.param(ANYWHERE, asked("a b", a=1, b=1), ("announced by a and b",), id="announcers disagree"),
        pytest.param(NEAR, asked("c", a=200), ("a answered",), id="an owner without a pod"),
        pytest.param(KEPT, asked("c", a=90, b=110), (), id="it is where its advertisement lets it"),
        pytest.param(KEPT, asked("a", a=90, b=110), ("announced by a",), id="it is where its advertisement forbids"),
    ],
)
def test_an_address_when_all_is_well(wanted: Wanted, seen: Asked, complaints: tuple[str, ...]) -> None:
    assert judge_asked(wanted, seen) == complaints


def stream(*parts: tuple[float, float, str]) -> list[Record]:
    """An attempt each 10 ms between two moments, answered by that pod; "" for none."""
    found = []
    for first, last, pod in parts:
        for step in range(round((last - first) / STEP_S)):
            outcome = Outcome.ANSWERED if pod else Outcome.TIMED_OUT
            found.append(Record(0, first + step * STEP_S, 0.001, outcome, pod, ""))
    return found


STAYS = stream((0.0, 3.0, "web-a"))
LOST = stream((0.0, 1.0, "web-a"), (1.0, 1.9, ""), (1.9, 3.0, "web-b"))
GIVEN = stream((0.0, 2.0, "web-a"), (2.0, 3.0, "web-b"))


@pytest.mark.parametrize(
    ("fate", "owner", "records", "complaints"),
    [
        pytest.param(Fate(moves=False), ("a", "a"), STAYS, (), id="nothing moves"),
        pytest.param(Fate(moves=True, dark_s=3.0), ("a", "b"), LOST, (), id="a lost node is replaced in time"),
        pytest.param(Fate(moves=True), ("a", "b"), GIVEN, (), id="an address is given without a loss"),
        pytest.param(
            Fate(moves=True, dark_s=0.5), ("a", "b"), LOST, ("dark for 0.9 s",), id="a lost node is replaced late"
        ),
        pytest.param(Fate(moves=True), ("a", "b"), LOST, ("90 lost",), id="a planned move loses some"),
        pytest.param(Fate(moves=False), ("a", "b"), GIVEN, ("it moved from a to b",), id="it moves without a reason"),
        pytest.param(Fate(moves=True), ("a", "a"), STAYS, ("it stayed on a",), id="it doesn't move"),
        pytest.param(
            Fate(moves=True, dark_s=3.0),
            ("a", "b"),
            stream((0.0, 1.0, "web-a"), (1.0, 3.0, "")),
            ("no answer at the end",),
            id="it never comes back",
        ),
        pytest.param(
            Fate(moves=False),
            ("a", "a"),
            stream((0.0, 2.0, "web-a"), (2.0, 3.0, "web-b")),
            ("b answered at the end",),
            id="another node's pods come to answer",
        ),
    ],
)
def test_an_address_while_something_happens(
    fate: Fate, owner: tuple[str, str], records: list[Record], complaints: tuple[str, ...]
) -> None:
    assert judge_moved(fate, owner, records, WINDOW, NODES).complaints == complaints


def test_what_is_shown_of_a_lost_node() -> None:
    moved = judge_moved(Fate(moves=True, dark_s=3.0), ("a", "b"), LOST, WINDOW, NODES)

    assert (moved.before, moved.after, moved.lost) == ({"a": 100}, {"b": 110}, 90)
    assert moved.dark_s == pytest.approx(0.9, abs=0.02)
    assert moved.near == (1.0, 1.0)


def test_a_share_of_nothing_is_none() -> None:
    assert share({}, {"a"}) == 0.0
    assert share({"a": 1, "b": 3}, {"a"}) == 0.25
