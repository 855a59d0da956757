"""How often is enough, and what is meant to differ."""

import pytest

from e2e.differential.client import Target, tries_needed
from e2e.differential.judge import Disagreement, comparable
from e2e.differential.model import EndpointSpec, PortSpec, ServiceSpec, SlicePortSpec, SliceSpec, State
from e2e.differential.targets import Probe
from e2e.differential.targets import Target as ProbeTarget
from e2e.differential.wanted import find_wanted


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


def differ(
    endpoints: list[EndpointSpec],
    closeby: set[str],
    peer: set[str],
    *,
    distribution: str | None = None,
    sticky: bool = False,
) -> str | None:
    """The name of what explains the fates that pod-a met at the Service."""
    piece = SliceSpec("v4-0", is_ipv6=False, ports=(SlicePortSpec("", "TCP", 8080),), endpoints=tuple(endpoints))
    port = PortSpec("", "TCP", 80)
    service = ServiceSpec(
        "web", "ClusterIP", ("10.96.1.1",), (port,), (piece,), distribution=distribution, sticky=sticky
    )
    probe = Probe("pod-a", ProbeTarget("TCP", "10.96.1.1", 80, len(endpoints), "web"))
    wanted = find_wanted(State("za", (service,)), Disagreement(probe, frozenset(closeby), frozenset(peer)))
    return wanted.name if wanted else None


NEAR, FAR = EndpointSpec("10.244.3.130", zone="za"), EndpointSpec("10.244.3.131", zone="zb")
HINTED = EndpointSpec("10.244.3.131", zone="zb", for_zones=("zb",))
ITSELF = EndpointSpec("10.244.1.2")
FROM_NEAR, FROM_FAR = "10.244.3.130 8080 10.244.1.2", "10.244.3.131 8080 10.244.1.2"


def test_a_preference_without_hints_may_choose_fewer() -> None:
    assert differ([NEAR, FAR], {FROM_NEAR}, {FROM_NEAR, FROM_FAR}, distribution="PreferClose")
    assert not differ([NEAR, FAR], {FROM_NEAR}, {FROM_NEAR, FROM_FAR})
    assert not differ([NEAR, FAR], {FROM_NEAR, FROM_FAR}, {FROM_NEAR}, distribution="PreferClose")
    assert not differ([NEAR, HINTED], {FROM_NEAR}, {FROM_NEAR, FROM_FAR}, distribution="PreferClose")


def test_a_pod_may_meet_itself_if_its_endpoint_names_no_node() -> None:
    met = "10.244.1.2 8080 10.244.1.1"

    assert differ([ITSELF, FAR], {met, FROM_FAR}, {"timed-out", FROM_FAR})
    assert not differ([EndpointSpec("10.244.1.2", node="node-1")], {met}, {"timed-out"})
    assert not differ([ITSELF, FAR], {met}, {"timed-out", FROM_FAR})


def test_only_kube_proxy_may_lose_refusals() -> None:
    assert differ([], {"refused"}, {"refused", "timed-out"})
    assert not differ([], {"refused", "timed-out"}, {"refused"})
    assert not differ([], {"refused"}, {"timed-out"})


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


def test_only_affinity_may_cost_a_packet() -> None:
    assert differ([NEAR], {FROM_NEAR, "timed-out"}, {FROM_NEAR}, sticky=True)
    assert not differ([NEAR], {FROM_NEAR, "timed-out"}, {FROM_NEAR})
    assert not differ([NEAR], {"timed-out"}, {FROM_NEAR}, sticky=True)
    assert not differ([NEAR, FAR], {FROM_NEAR, FROM_FAR}, {FROM_NEAR}, sticky=True)
