"""How often is enough, and what must be equal."""

import pytest

from e2e.differential.client import Target, tries_needed
from e2e.differential.judge import comparable, keeps_own_rule
from e2e.differential.targets import Probe
from e2e.differential.targets import Target as ProbeTarget

FROM_NEAR, FROM_FAR = "10.244.3.130 8080 10.244.1.2", "10.244.3.131 8080 10.244.1.2"


@pytest.mark.parametrize(
    ("seen", "candidates", "tries"),
    [
        pytest.param(1, 1, 0, id="the only candidate was seen"),
        pytest.param(1, 2, 31, id="one of two, a second could be hidden"),
        pytest.param(2, 5, 54, id="two of five"),
        pytest.param(5, 5, 0, id="all five were seen"),
        pytest.param(1, 0, 31, id="an answer where none was expected"),
    ],
)
def test_tries_go_on_until_a_further_fate_would_have_shown(seen: int, candidates: int, tries: int) -> None:
    assert tries_needed(seen, candidates) == tries
    assert (seen + 1) * (1 - 1 / (seen + 1)) ** max(tries, 1) <= 1e-9 or seen == candidates


@pytest.mark.parametrize(
    ("fates", "open_tries"),
    [
        pytest.param({}, 0, id="on their way"),
        pytest.param({"refused": 2}, 0, id="refused twice"),
        pytest.param({"timed-out": 2}, 0, id="no answer twice"),
        pytest.param({"a 80 s": 2}, 29, id="answered by one"),
        pytest.param({"a 80 s": 1, "timed-out": 1}, 52, id="answered once, silent once"),
    ],
)
def test_a_target_ends_when_its_fate_is_sure(fates: dict[str, int], open_tries: int) -> None:
    target = Target(["TCP", "10.96.0.1", 80, 3])
    target.started, target.fates = 2, fates

    assert target.open_tries(failed_tries=2) == open_tries


@pytest.mark.parametrize(
    ("sticky", "fates", "compared"),
    [
        pytest.param(False, {FROM_NEAR}, {FROM_NEAR}, id="who answered counts"),
        pytest.param(True, {FROM_NEAR}, {"1 endpoints"}, id="that it is one counts where affinity picks it"),
        pytest.param(True, {FROM_NEAR, FROM_FAR}, {"2 endpoints"}, id="affinity that doesn't hold"),
        pytest.param(True, {"timed-out"}, {"timed-out", "0 endpoints"}, id="a failure stays one"),
    ],
)
def test_what_must_be_equal(*, sticky: bool, fates: set[str], compared: set[str]) -> None:
    probe = Probe("pod-a", ProbeTarget("TCP", "10.96.1.1", 80, 2, "web", sticky=sticky))

    assert comparable(probe, frozenset(fates)) == compared


def test_where_frontends_have_lists_of_their_own_a_client_may_be_bound_anew() -> None:
    probe = Probe("pod-a", ProbeTarget("TCP", "10.96.1.1", 80, 2, "web", sticky=True, one_list=False))

    assert comparable(probe, frozenset({FROM_NEAR, FROM_FAR})) == comparable(probe, frozenset({FROM_FAR}))
    assert comparable(probe, frozenset({FROM_NEAR})) != comparable(probe, frozenset({"timed-out"}))


@pytest.mark.parametrize(
    ("must", "sticky", "fates", "keeps"),
    [
        pytest.param(None, False, {FROM_FAR}, True, id="no rule of its own"),
        pytest.param({"10.244.3.130 8080"}, False, {FROM_NEAR}, True, id="exactly the endpoint"),
        pytest.param({"10.244.3.130 8080"}, False, {FROM_NEAR, FROM_FAR}, False, id="another, too"),
        pytest.param({"10.244.3.130 8080", "10.244.3.131 8080"}, False, {FROM_FAR}, False, id="one is missing"),
        pytest.param({"10.244.3.130 8080", "10.244.3.131 8080"}, True, {FROM_FAR}, True, id="affinity binds to one"),
        pytest.param({"10.244.3.130 8080"}, True, {FROM_FAR}, False, id="affinity binds to another"),
        pytest.param({"10.244.3.130 8080"}, True, {"timed-out"}, False, id="affinity binds to none"),
        pytest.param(set(), False, {"refused"}, True, id="none, and none answers"),
    ],
)
def test_closeby_keeps_a_rule_of_its_own(must: set[str] | None, *, sticky: bool, fates: set[str], keeps: bool) -> None:
    target = ProbeTarget("TCP", "10.96.1.1", 80, 2, "web", sticky=sticky)
    probe = Probe("pod-a", target, None if must is None else frozenset(must))

    assert keeps_own_rule(probe, frozenset(fates)) is keeps
