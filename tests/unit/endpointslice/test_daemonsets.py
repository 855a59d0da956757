"""When a DaemonSet keeps its traffic on the node, and why not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.daemonsets import (
    Evidence,
    Hold,
    Mode,
    SameNode,
    SameNodeWhy,
    judge_same_node,
)
from endpointslice.types import (
    DaemonSetName,
    NodeName,
    Pod,
    PodName,
    SliceEndpoint,
    TrafficDistribution,
)
from tests.builders import a_slice, daemon_set, pod, service
from tests.unit.endpointslice.daemon_set_world import (
    AGENT,
    CLOSE,
    N1,
    N1_POD,
    N2,
    N3,
    NOT_HELD,
    evidence,
    judge,
    on_node,
)


def test_a_daemon_set_that_covers_its_nodes_keeps_traffic_on_them() -> None:
    assert judge([N1, N2, N3]) == SameNode(
        on=True, why=SameNodeWhy.COVERED, daemon_set=AGENT, wanted_pod=None, hold=Hold(on=True)
    )


@pytest.mark.parametrize(
    ("endpoints", "given", "why"),
    [
        pytest.param([N1, N2], evidence(), "covered", id="all nodes but one"),
        pytest.param([N1], evidence(), "too-few-nodes", id="all nodes but two"),
        pytest.param([N1, on_node(2, "X"), on_node(3, "T")], evidence(), "too-few-nodes", id="unready, draining"),
        pytest.param([N1, on_node(1, ip="10.244.1.2")], evidence(), "too-few-nodes", id="two pods of one node are one"),
        pytest.param([N1, on_node(2, node=None)], evidence(), "too-few-nodes", id="a pod without a node is none"),
        pytest.param([N1], evidence(mode=Mode.ALWAYS), "always", id="Always asks for no coverage"),
        pytest.param([N1, N2, N3], evidence(mode=Mode.NEVER), "never", id="Never"),
        pytest.param([N1, N2, N3], evidence(daemon_sets={}), "no-daemon-set", id="no DaemonSet"),
        pytest.param(
            [N1, N2, N3],
            evidence(daemon_sets={AGENT: daemon_set(), DaemonSetName("default/x"): daemon_set("default/x")}),
            "several-daemon-sets",
            id="two DaemonSets match",
        ),
        pytest.param(
            [N1, N2, on_node(3, pod=PodName("default/agent-x-55zdq"))], evidence(), "other-pods", id="another's name"
        ),
        pytest.param([N1, N2, on_node(3, "X", pod=PodName("default/web-0"))], evidence(), "other-pods", id="unready"),
        pytest.param([N1, N2, on_node(3, pod=None)], evidence(), "other-pods", id="an endpoint that isn't a pod"),
        pytest.param([N2, N3], evidence(), "no-local-endpoint", id="nothing on this node"),
        pytest.param([on_node(1, "T"), N2, N3], evidence(), "no-local-endpoint", id="only a draining pod on this node"),
        pytest.param([N1, N2, N3], evidence(node=NodeName("")), "no-local-endpoint", id="this node is unknown"),
        pytest.param([N1, N2, N3], evidence(pods={}), "owner-unknown", id="the pod's owner isn't known"),
        pytest.param(
            [N1, N2, N3],
            evidence(pods={N1_POD: pod(N1_POD, uid="before")}),
            "owner-unknown",
            id="a pod of that name was known before",
        ),
        pytest.param(
            [N1, N2, N3], evidence(pods={N1_POD: pod(N1_POD)}), "covered", id="a manifest's pod has no uid and will do"
        ),
        pytest.param(
            [N1, N2, N3], evidence(pods={N1_POD: pod(N1_POD, None, "u1")}), "other-owner", id="somebody else's pod"
        ),
        pytest.param(
            [N1, N2, N3],
            evidence(pods={N1_POD: pod(N1_POD, "default/other", "u1")}),
            "other-owner",
            id="another DaemonSet's pod",
        ),
        pytest.param([], evidence(), "too-few-nodes", id="no endpoints"),
    ],
)
def test_the_rule_is_on_or_off_with_its_reason(endpoints: list[SliceEndpoint], given: Evidence, why: str) -> None:
    answer = judge(endpoints, given)

    assert (answer.on, answer.why) == (why in {"covered", "always"}, why)


@pytest.mark.parametrize(
    ("distribution", "why"),
    [
        (None, SameNodeWhy.NO_PREFERENCE),
        (TrafficDistribution.PREFER_CLOSE, SameNodeWhy.COVERED),
        (TrafficDistribution.PREFER_SAME_ZONE, SameNodeWhy.COVERED),
        (TrafficDistribution.PREFER_SAME_NODE, SameNodeWhy.NO_PREFERENCE),
    ],
)
def test_the_service_must_prefer_closeness(distribution: TrafficDistribution | None, why: SameNodeWhy) -> None:
    assert judge([N1, N2, N3], of=service(traffic_distribution=distribution)).why is why


@pytest.mark.parametrize(
    ("endpoints", "pods", "wanted"),
    [
        pytest.param([N2, N1, N3], {}, N1_POD, id="this node's pod"),
        pytest.param([N2, N3], {}, None, id="no other node's pod"),
        pytest.param([N1, N2], {N1_POD: pod(N1_POD, uid="u1")}, None, id="none that is known"),
        pytest.param([N1, N2], {N1_POD: pod(N1_POD, uid="u0")}, N1_POD, id="one whose predecessor is known"),
        pytest.param(
            [N1, on_node(1, "X", pod=PodName("default/agent-bbbbb")), N2],
            {N1_POD: pod(N1_POD, uid="u1")},
            PodName("default/agent-bbbbb"),
            id="one that isn't ready yet, in time",
        ),
        pytest.param(
            [on_node(1, "X", pod=PodName("default/agent-00000")), N1, N2], {}, N1_POD, id="the ready one first"
        ),
    ],
)
def test_the_wanted_pod(endpoints: list[SliceEndpoint], pods: dict[PodName, Pod], wanted: PodName | None) -> None:
    assert wanted == judge(endpoints, evidence(pods=pods)).wanted_pod


def test_a_known_pod_is_no_proof_for_an_unknown_one_beside_it() -> None:
    beside = on_node(1, ip="10.244.1.2", pod=PodName("default/agent-bbbbb"))

    answer = judge([N1, beside, N2])

    assert (answer.on, answer.why, answer.wanted_pod) == (False, SameNodeWhy.OWNER_UNKNOWN, beside.pod)


def test_no_pod_is_wanted_where_the_rule_is_off_anyway() -> None:
    assert judge([N1], evidence(pods={})).wanted_pod is None


def test_endpoints_of_all_slices_count() -> None:
    pieces = [a_slice([N1]), a_slice([N2], "default/web-2")]

    assert judge_same_node(CLOSE, pieces, evidence(), held=NOT_HELD, now_s=0).on


def test_a_daemon_set_without_status_covers_where_no_nodes_are_known() -> None:
    daemon_sets = {AGENT: daemon_set(desired=None)}

    assert judge([N1], evidence(daemon_sets=daemon_sets)).on
    assert not judge([N1], evidence(daemon_sets=daemon_sets, ready_nodes=3)).on
    assert judge([N1, N2], evidence(daemon_sets=daemon_sets, ready_nodes=3)).on


def test_a_service_without_a_selector_says_so() -> None:
    of = service(traffic_distribution=TrafficDistribution.PREFER_CLOSE, selector=frozenset())

    assert judge([N1, N2, N3], of=of) == SameNode(on=False, why=SameNodeWhy.NO_SELECTOR)


@given(st.permutations([N1, N2, N3, on_node(1, "X", ip="10.244.1.2", pod=PodName("default/agent-bbbbb"))]))
def test_the_order_of_endpoints_does_not_matter(endpoints: list[SliceEndpoint]) -> None:
    assert judge(endpoints) == judge(sorted(endpoints, key=lambda each: each.ip))
