import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.daemonsets import (
    HOLD_S,
    Evidence,
    Hold,
    Mode,
    NotOne,
    SameNode,
    SameNodeWhy,
    hold,
    judge_same_node,
    match_daemon_set,
    may_own,
    wanted_nodes,
)
from endpointslice.types import (
    DaemonSet,
    DaemonSetName,
    NodeName,
    Pod,
    PodName,
    Service,
    SliceEndpoint,
    TrafficDistribution,
)
from tests.builders import a_slice, daemon_set, pod, service, slice_endpoint

AGENT = DaemonSetName("default/agent")
CLOSE = service(traffic_distribution=TrafficDistribution.PREFER_CLOSE)
N1_POD = PodName("default/agent-aaaa1")
NOT_HELD = Hold()
ALREADY_ON = Hold(on=True)


def on_node(number: int, conditions: str = "R", /, **fields: object) -> SliceEndpoint:
    """The DaemonSet's pod of node n1, n2, .. ."""
    return slice_endpoint(
        f"10.244.{number}.1",
        conditions,
        **{"node": NodeName(f"n{number}"), "pod": PodName(f"default/agent-aaaa{number}"), "pod_uid": f"u{number}"}
        | fields,
    )


N1, N2, N3 = on_node(1), on_node(2), on_node(3)


def evidence(**fields: object) -> Evidence:
    plain = Evidence(Mode.AUTO, NodeName("n1"), {AGENT: daemon_set()}, {N1_POD: pod(N1_POD, uid="u1")})
    return msgspec.structs.replace(plain, **fields)


def judge(
    endpoints: list[SliceEndpoint], given: Evidence | None = None, *, of: Service = CLOSE, held: Hold = NOT_HELD
) -> SameNode:
    return judge_same_node(of, [a_slice(endpoints)], given or evidence(), held=held, now_s=100.0)


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


@pytest.mark.parametrize(
    ("fields", "ready_nodes", "wanted"),
    [
        pytest.param({"desired": 3}, None, 2, id="all but one"),
        pytest.param({"desired": 3}, 6, 2, id="its own status beats the number of Ready nodes"),
        pytest.param({"desired": 1}, None, 0, id="a single node needs none"),
        pytest.param({"desired": 0}, 6, -1, id="meant for no node"),
        pytest.param({"desired": 10, "max_unavailable": "3"}, None, 7, id="maxUnavailable 3"),
        pytest.param({"desired": 10, "max_unavailable": "0"}, None, 9, id="maxUnavailable 0 (maxSurge) allows one"),
        pytest.param({"desired": 10, "max_unavailable": "25%"}, None, 7, id="25% of 10 rounds up to 3"),
        pytest.param({"desired": 10, "max_unavailable": "0%"}, None, 9, id="0% allows one"),
        pytest.param({"desired": 10, "max_unavailable": "many"}, None, 9, id="what isn't a number allows one"),
        pytest.param({"desired": 10, "max_unavailable": "-3"}, None, 9, id="a negative number allows one"),
        pytest.param({"desired": None}, 5, 4, id="no status: the folder's Ready nodes"),
        pytest.param({"desired": None, "max_unavailable": "50%"}, 5, 2, id="no status: a percentage of those"),
        pytest.param({"desired": None}, None, -1, id="no status and no nodes: covering"),
    ],
)
def test_how_many_nodes_must_be_covered(fields: dict[str, object], ready_nodes: int | None, wanted: int) -> None:
    assert wanted == wanted_nodes(daemon_set(**fields), ready_nodes)


def test_a_daemon_set_without_status_covers_where_no_nodes_are_known() -> None:
    daemon_sets = {AGENT: daemon_set(desired=None)}

    assert judge([N1], evidence(daemon_sets=daemon_sets)).on
    assert not judge([N1], evidence(daemon_sets=daemon_sets, ready_nodes=3)).on
    assert judge([N1, N2], evidence(daemon_sets=daemon_sets, ready_nodes=3)).on


@pytest.mark.parametrize(
    ("selector", "daemon_sets", "expected"),
    [
        pytest.param({("app", "web")}, [daemon_set()], AGENT, id="equal labels"),
        pytest.param(
            {("app", "web")},
            [daemon_set(template_labels=frozenset({("app", "web"), ("v", "1")}))],
            AGENT,
            id="more labels than selected",
        ),
        pytest.param({("app", "web"), ("v", "1")}, [daemon_set()], NotOne.NO_DAEMON_SET, id="fewer labels"),
        pytest.param({("app", "web")}, [daemon_set("other/agent")], NotOne.NO_DAEMON_SET, id="another namespace"),
        pytest.param(
            {("app", "web")}, [daemon_set("default-2/agent")], NotOne.NO_DAEMON_SET, id="a namespace that begins alike"
        ),
        pytest.param(set(), [daemon_set()], NotOne.NO_SELECTOR, id="no selector selects nothing"),
        pytest.param({("app", "web")}, [], NotOne.NO_DAEMON_SET, id="no DaemonSets"),
        pytest.param(
            {("app", "web")}, [daemon_set(), daemon_set("default/agent-2")], NotOne.SEVERAL, id="two that match"
        ),
    ],
)
def test_the_daemon_set_behind_a_service(
    selector: set[tuple[str, str]], daemon_sets: list[DaemonSet], expected: DaemonSetName | NotOne
) -> None:
    assert expected == match_daemon_set(service(selector=frozenset(selector)), daemon_sets)


def test_a_service_without_a_selector_says_so() -> None:
    of = service(traffic_distribution=TrafficDistribution.PREFER_CLOSE, selector=frozenset())

    assert judge([N1, N2, N3], of=of) == SameNode(on=False, why=SameNodeWhy.NO_SELECTOR)


@pytest.mark.parametrize(
    ("name", "may"),
    [
        ("default/agent-55zdq", True),
        ("default/agent-x-55zdq", False),
        ("default/agent-55zd", False),
        ("default/agent-55zdqq", False),
        ("default/agent-55ZDQ", False),
        ("default/agent-55zdq\n", False),
        ("default/agent55zdq", False),
        ("default/agent", False),
        ("other/agent-55zdq", False),
    ],
)
def test_names_that_the_controller_gives(name: str, *, may: bool) -> None:
    assert may == may_own(AGENT, PodName(name))


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


@given(st.permutations([N1, N2, N3, on_node(1, "X", ip="10.244.1.2", pod=PodName("default/agent-bbbbb"))]))
def test_the_order_of_endpoints_does_not_matter(endpoints: list[SliceEndpoint]) -> None:
    assert judge(endpoints) == judge(sorted(endpoints, key=lambda each: each.ip))
