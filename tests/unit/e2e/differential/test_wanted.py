"""What is meant to differ from kube-proxy, and only with its cause and the exact answer."""

import pytest
from msgspec.structs import replace

from e2e.differential.expect import Own, choose_as_closeby
from e2e.differential.judge import Disagreement
from e2e.differential.model import DaemonSetSpec, EndpointSpec, PortSpec, ServiceSpec, SlicePortSpec, SliceSpec, State
from e2e.differential.places import OTHER_PROXY
from e2e.differential.targets import Probe, list_probes
from e2e.differential.wanted import find_wanted

NEAR, FAR = EndpointSpec("10.244.3.130", "node-3", zone="za"), EndpointSpec("10.244.3.131", "node-4", zone="zb")
HINTED = EndpointSpec("10.244.3.131", "node-4", zone="zb", for_zones=("zb",))
ITSELF = EndpointSpec("10.244.1.2")
HERE = EndpointSpec("10.244.1.130", "node-1", zone="za")
FROM_NEAR, FROM_FAR, FROM_HERE = (f"10.244.{ip} 8080 10.244.1.2" for ip in ("3.130", "3.131", "1.130"))
MET_ITSELF = "10.244.1.2 8080 10.244.1.1"
LOST = "timed-out"


def service(*endpoints: EndpointSpec, **changes: object) -> ServiceSpec:
    piece = SliceSpec("v4-0", is_ipv6=False, ports=(SlicePortSpec("", "TCP", 8080),), endpoints=endpoints)
    made = ServiceSpec("web", "ClusterIP", ("10.96.1.1",), (PortSpec("", "TCP", 80),), (piece,))
    return replace(made, **changes)


def probe(state: State, client: str = "pod-a") -> Probe:
    """The client's to the Service's ClusterIP."""
    ways = ((one.client, one.target.protocol, one.target.ip, one.target.port) for one in list_probes(state))
    index = list(ways).index((client, "TCP", "10.96.1.1", 80))
    return list_probes(state)[index]


def name(services: list[ServiceSpec], closeby: set[str], peer: set[str]) -> str | None:
    """What explains the fates after states with one Service each."""
    states = [State("za", (one,)) for one in services]
    found = Disagreement(probe(states[-1]), frozenset(closeby), frozenset(peer))
    wanted = find_wanted(states, found)
    return wanted.name if wanted else None


BACKED = {"distribution": "PreferClose", "daemon_set": DaemonSetSpec(desired=2, owns=True)}
PODS = tuple(replace(one, pod=f"web-{number}aaaa") for number, one in enumerate((HERE, NEAR, FAR)))


@pytest.mark.parametrize(
    ("given", "closeby", "explained"),
    [
        pytest.param(service(*PODS, **BACKED), {FROM_HERE}, Own.DAEMON_SET, id="the node's pod"),
        pytest.param(service(*PODS, **BACKED), {FROM_NEAR}, None, id="another node's pod"),
        pytest.param(service(*PODS, **BACKED), {FROM_HERE, LOST}, None, id="some tries were lost"),
        pytest.param(service(*PODS), {FROM_HERE}, None, id="no preference"),
        pytest.param(
            service(*PODS, **{**BACKED, "daemon_set": DaemonSetSpec(desired=50, owns=True)}),
            {FROM_HERE},
            None,
            id="too few nodes: the zone's endpoints are two",
        ),
        pytest.param(
            service(*PODS, **{**BACKED, "daemon_set": DaemonSetSpec(desired=2, owns=False)}),
            {FROM_HERE, FROM_NEAR},
            Own.NO_HINTS,
            id="others own the node's pod: the zone's two",
        ),
    ],
)
def test_a_daemon_sets_traffic_stays_on_the_node(given: ServiceSpec, closeby: set[str], explained: str | None) -> None:
    assert name([given], closeby, {FROM_HERE, FROM_NEAR, FROM_FAR}) == explained


def test_a_preference_without_hints_must_choose_the_endpoints_that_are_near() -> None:
    near = service(NEAR, FAR, distribution="PreferClose")

    assert name([near], {FROM_NEAR}, {FROM_NEAR, FROM_FAR}) == Own.NO_HINTS
    assert name([near], {FROM_FAR}, {FROM_NEAR, FROM_FAR}) is None
    assert name([near], {FROM_NEAR, FROM_FAR}, {FROM_NEAR}) is None
    assert name([service(NEAR, FAR)], {FROM_NEAR}, {FROM_NEAR, FROM_FAR}) is None
    assert name([service(NEAR, HINTED, distribution="PreferClose")], {FROM_NEAR}, {FROM_NEAR, FROM_FAR}) is None


def test_the_source_that_an_endpoint_sees_is_no_choice() -> None:
    masqueraded = FROM_NEAR.replace("10.244.1.2", "172.30.0.11")

    assert name([service(NEAR, FAR, distribution="PreferClose")], {masqueraded}, {FROM_NEAR, FROM_FAR}) is None


def test_a_pod_may_meet_itself_if_its_endpoint_names_no_node() -> None:
    assert name([service(ITSELF, FAR)], {MET_ITSELF, FROM_FAR}, {LOST, FROM_FAR})
    assert not name([service(ITSELF, FAR)], {MET_ITSELF}, {LOST, FROM_FAR})
    assert not name([service(ITSELF, FAR)], {"10.244.1.2 8080 10.244.1.2", FROM_FAR}, {LOST, FROM_FAR})
    assert not name([service(replace(ITSELF, node="node-1"))], {MET_ITSELF}, {LOST})
    assert not name([service(replace(ITSELF, ready=False), FAR)], {MET_ITSELF, FROM_FAR}, {LOST, FROM_FAR})


def test_with_affinity_it_may_be_bound_to_itself_or_to_another() -> None:
    bound = service(ITSELF, FAR, sticky=True)

    assert name([bound], {MET_ITSELF}, {LOST})
    assert name([bound], {FROM_FAR}, {LOST})
    assert not name([bound], {MET_ITSELF, FROM_FAR}, {LOST})
    assert not name([bound], {FROM_NEAR}, {LOST})


def test_only_a_binding_to_an_endpoint_that_left_may_cost_a_packet() -> None:
    before, now = service(NEAR, FAR, sticky=True), service(NEAR, sticky=True)

    assert name([before, now], {FROM_NEAR, LOST}, {FROM_NEAR})
    assert not name([now], {FROM_NEAR, LOST}, {FROM_NEAR})
    assert not name([service(NEAR, FAR), now], {FROM_NEAR, LOST}, {FROM_NEAR})
    assert not name([before, service(NEAR)], {FROM_NEAR, LOST}, {FROM_NEAR})
    assert not name([before, now], {LOST}, {FROM_NEAR})
    assert not name([before, now], {FROM_FAR, LOST}, {FROM_NEAR})
    assert not name([now, before], {FROM_NEAR, FROM_FAR, LOST}, {FROM_NEAR})


def test_a_binding_by_another_frontend_with_another_list_may_cost_one_as_well() -> None:
    lists = service(HERE, FAR, sticky=True, internal_policy="Local", external_ips=("172.31.0.9",))

    assert name([lists], {FROM_HERE, LOST}, {FROM_HERE})


def test_of_two_services_that_claim_an_address_the_older_one_has_it() -> None:
    first = service(NEAR, external_ips=("172.31.0.9",))
    last = replace(service(FAR, external_ips=("172.31.0.9",)), name="other", cluster_ips=("10.96.1.2",))
    state = State("za", (first, last))
    claimed = next(one for one in list_probes(state) if one.target.ip == "172.31.0.9" and one.target.protocol == "TCP")

    assert claimed.must == frozenset({"10.244.3.130 8080"})
    assert claimed.why is Own.CLAIM
    assert find_wanted([state], Disagreement(claimed, frozenset({FROM_NEAR}), frozenset({FROM_FAR})))
    assert not find_wanted([state], Disagreement(claimed, frozenset({FROM_FAR}), frozenset({FROM_NEAR})))


def test_an_address_whose_own_service_is_another_proxys_is_judged_by_the_service_that_claims_it() -> None:
    hidden = service(HERE, label=OTHER_PROXY)
    claimant = service(NEAR, FAR, distribution="PreferClose", external_ips=("10.96.1.1",))
    state = State("za", (hidden, replace(claimant, name="other", cluster_ips=("10.96.1.2",))))
    asked = probe(state)

    assert asked.target.service == "web"
    assert (asked.must, asked.why) == (frozenset({"10.244.3.130 8080"}), Own.NO_HINTS)
    wanted = find_wanted([state], Disagreement(asked, frozenset({FROM_NEAR}), frozenset({FROM_NEAR, FROM_FAR})))
    assert wanted
    assert wanted.name == Own.NO_HINTS
    assert not find_wanted([state], Disagreement(asked, frozenset({FROM_FAR}), frozenset({FROM_NEAR, FROM_FAR})))


def test_of_an_address_that_stands_twice_the_one_that_does_not_terminate_counts() -> None:
    twice = service(replace(NEAR, ready=False, terminating=True), NEAR)
    chosen, _ = choose_as_closeby(twice, probe(State("za", (twice,))).way, "za")

    assert [one.spec for one in chosen] == [NEAR]
