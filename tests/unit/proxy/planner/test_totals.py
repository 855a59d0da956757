"""Counts over all Services, kept as sums."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.daemonsets import SAME_NODE_OFF
from endpointslice.topology import Place, Tier
from endpointslice.types import IP, Family, NodeName, Service, ServiceName, SliceEndpoint, TrafficPolicy
from proxy.planner.frontends import Claims, service_claims
from proxy.planner.plan import Rules, ServicePlan, ServiceState, plan_service
from proxy.planner.totals import NoLocal, PolicyKind, Totals, count_no_local, count_tiers
from tests.builders import HTTP_NODE_PORT, a_slice, service, slice_endpoint

LOCAL = TrafficPolicy.LOCAL
HERE = slice_endpoint("10.244.0.1", node=NodeName("n1"))
THERE = slice_endpoint("10.244.0.2", node=NodeName("n2"))
DRAINING = slice_endpoint("10.244.0.3", "T", node=NodeName("n2"))
INTERNAL, EXTERNAL = NoLocal(PolicyKind.INTERNAL, Family.IPV4), NoLocal(PolicyKind.EXTERNAL, Family.IPV4)


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b"]), st.dictionaries(st.sampled_from("xyz"), st.integers(1, 9))), max_size=8
    )
)
def test_the_sums_are_those_of_the_last_counts(steps: list[tuple[str, dict[str, int]]]) -> None:
    totals: Totals[str] = Totals()
    for name, counts in steps:
        totals.replace(ServiceName(name), counts)

    last = dict(steps)
    assert {value: totals.sums[value] for value in "xyz"} == {
        value: sum(counts.get(value, 0) for counts in last.values()) for value in "xyz"
    }


def plan(of: Service, *endpoints: SliceEndpoint) -> ServicePlan:
    claims = Claims()
    claims.replace(of.name, service_claims(of))
    state = ServiceState(of, [a_slice(endpoints)], SAME_NODE_OFF)
    return plan_service(state, Place(NodeName("n1"), None), Rules(detects_pods=False, masquerade_all=False), claims)


@pytest.mark.parametrize(
    ("of", "endpoints", "tiers"),
    [
        pytest.param(service(), [HERE, THERE], {Tier.CLUSTER: 2}, id="all ready ones"),
        pytest.param(service(), [DRAINING], {Tier.DRAINING: 1}, id="draining ones"),
        pytest.param(service(internal_traffic_policy=LOCAL), [HERE, THERE], {Tier.LOCAL_POLICY: 1}, id="local ones"),
        pytest.param(
            service(cluster_ips=(IP("10.96.0.1"), IP("fd00::1"))),
            [HERE],
            {Tier.CLUSTER: 1, Tier.NONE: 0},
            id="both families",
        ),
    ],
)
def test_endpoints_in_use_by_tier(of: Service, endpoints: list[SliceEndpoint], tiers: dict[Tier, int]) -> None:
    assert count_tiers(plan(of, *endpoints)) == tiers


@pytest.mark.parametrize(
    ("of", "endpoints", "counts"),
    [
        pytest.param(service(), [THERE], {}, id="policy Cluster counts nothing"),
        pytest.param(service(internal_traffic_policy=LOCAL), [THERE], {INTERNAL: 1}, id="internal Local"),
        pytest.param(service(internal_traffic_policy=LOCAL), [HERE], {}, id="internal Local with one here"),
        pytest.param(service(internal_traffic_policy=LOCAL), [], {}, id="without endpoints anywhere it is no matter"),
        pytest.param(
            service(
                type="NodePort",
                ports=(HTTP_NODE_PORT,),
                external_traffic_policy=LOCAL,
                internal_traffic_policy=LOCAL,
            ),
            [THERE],
            {INTERNAL: 1, EXTERNAL: 1},
            id="both Local",
        ),
    ],
)
def test_ports_that_a_local_policy_leaves_without_endpoints(
    of: Service, endpoints: list[SliceEndpoint], counts: dict[NoLocal, int]
) -> None:
    assert count_no_local(plan(of, *endpoints)) == counts
