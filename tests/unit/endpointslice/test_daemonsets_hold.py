"""How long too few nodes are put up with."""

from hypothesis import given
from hypothesis import strategies as st

from endpointslice.daemonsets import (
    HOLD_S,
    Hold,
    SameNode,
    SameNodeWhy,
    hold,
    judge_same_node,
)
from endpointslice.types import (
    PodName,
)
from tests.builders import a_slice
from tests.unit.endpointslice.daemon_set_world import AGENT, CLOSE, N1, N2, N3, evidence, judge, on_node

ALREADY_ON = Hold(on=True)


def test_too_few_nodes_are_put_up_with_for_a_while() -> None:
    start = hold(ALREADY_ON, covered_now=False, now_s=100.0)

    assert start == Hold(on=True, until_s=130.0)
    assert hold(start, covered_now=False, now_s=129.9) == start
    assert hold(start, covered_now=False, now_s=130.0) == Hold(on=False)
    assert hold(start, covered_now=True, now_s=129.9) == Hold(on=True)


def test_what_was_never_on_is_not_held() -> None:
    assert hold(Hold(), covered_now=False, now_s=0.0) == Hold()


def test_a_held_rule_stays_on_and_says_until_when() -> None:
    answer = judge([N1], held=ALREADY_ON)

    assert answer == SameNode(on=True, why=SameNodeWhy.HELD, daemon_set=AGENT, hold=Hold(on=True, until_s=130.0))
    assert not judge_same_node(CLOSE, [a_slice([N1])], evidence(), held=answer.hold, now_s=130.0).on


def test_what_else_is_missing_is_not_held() -> None:
    other = on_node(3, pod=PodName("default/web-0"))

    assert judge([N1, N2, other], held=ALREADY_ON) == SameNode(
        on=False, why=SameNodeWhy.OTHER_PODS, daemon_set=AGENT, hold=Hold()
    )


def test_coverage_is_remembered_while_the_owner_is_asked_for() -> None:
    assert judge([N1, N2, N3], evidence(pods={})).hold == Hold(on=True)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 100)), max_size=12))
def test_the_hold_never_outlasts_its_time_and_never_ends_before(steps: list[tuple[bool, float]]) -> None:
    """Against the sentence: on while covered, and for HOLD_S after coverage was first seen missing."""
    state, now_s, lost_s = Hold(), 0.0, None
    for covered_now, wait_s in steps:
        now_s += wait_s
        was_on = state.on
        state = hold(state, covered_now=covered_now, now_s=now_s)
        assert state == hold(state, covered_now=covered_now, now_s=now_s)
        if covered_now:
            lost_s = None
        elif was_on and lost_s is None:
            lost_s = now_s
        expected = covered_now or (was_on and lost_s is not None and now_s < lost_s + HOLD_S)
        assert state.on == expected
