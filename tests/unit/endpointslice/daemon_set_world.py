"""A DaemonSet's pods on a few nodes, and what the rule says of them."""

import msgspec

from endpointslice.daemonsets import (
    Evidence,
    Hold,
    Mode,
    SameNode,
    judge_same_node,
)
from endpointslice.types import (
    DaemonSetName,
    NodeName,
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
