"""What comes on top of kube-proxy's rules; those are in test_truth_tables.py, the laws in test_topology_laws.py."""

import msgspec
import pytest

from endpointslice.daemonsets import SAME_NODE_OFF, SameNode, SameNodeWhy
from endpointslice.topology import (
    Choice,
    LeftOut,
    Place,
    Tier,
    Why,
    choose_cluster_endpoints,
    choose_port,
    is_local,
    left_out,
)
from endpointslice.types import Endpoint, NodeName, TrafficDistribution, TrafficPolicy, Zone
from tests.builders import HTTP, endpoint, nodes, service, zones

CLOSE = TrafficDistribution.PREFER_CLOSE
SAME_ZONE = TrafficDistribution.PREFER_SAME_ZONE
SAME_NODE = TrafficDistribution.PREFER_SAME_NODE
ON = SameNode(on=True, why=SameNodeWhy.COVERED)
HERE = Place(NodeName("n1"), Zone("za"))

NEAR = endpoint("10.244.0.1", node="n1", zone="za")
ZONE_MATE = endpoint("10.244.0.2", node="n2", zone="za")
FAR = endpoint("10.244.0.3", node="n3", zone="zb")
NOWHERE = endpoint("10.244.0.4")
NEAR_DRAINING = endpoint("10.244.0.5", "T", node="n1", zone="za")
FAR_DRAINING = endpoint("10.244.0.6", "T", node="n3", zone="zb")
UNREADY = endpoint("10.244.0.7", "X", node="n1", zone="za")
TERMINATING = endpoint("10.244.0.8", "N", node="n1", zone="za")


def hinted(plain: Endpoint, *, zone: str = "", node: str = "") -> Endpoint:
    return msgspec.structs.replace(
        plain, for_zones=zones(*filter(None, [zone])), for_nodes=nodes(*filter(None, [node]))
    )


NEAR_HINTED = hinted(NEAR, zone="za", node="n1")
MATE_HINTED = hinted(ZONE_MATE, zone="za", node="n2")
FAR_HINTED = hinted(FAR, zone="zb", node="n3")
NEAR_ZONED = hinted(NEAR, zone="za")
MATE_ZONED = hinted(ZONE_MATE, zone="za")
FAR_ZONED = hinted(FAR, zone="zb")


@pytest.mark.parametrize(
    ("endpoints", "distribution", "same_node", "expected"),
    [
        pytest.param(
            [NEAR_HINTED, MATE_HINTED, FAR_HINTED],
            SAME_NODE,
            SAME_NODE_OFF,
            Choice((NEAR_HINTED,), Tier.SAME_NODE, Why.NODE_HINTS),
            id="node hints",
        ),
        pytest.param(
            [NEAR, hinted(ZONE_MATE, node="n1")],
            CLOSE,
            ON,
            Choice((NEAR,), Tier.SAME_NODE, Why.DAEMON_SET_ON_NODE),
            id="incomplete node hints leave it to the DaemonSet rule",
        ),
        pytest.param(
            [hinted(NEAR, node="n2"), hinted(ZONE_MATE, node="n1")],
            CLOSE,
            ON,
            Choice((hinted(ZONE_MATE, node="n1"),), Tier.SAME_NODE, Why.NODE_HINTS),
            id="node hints go before the DaemonSet rule",
        ),
        pytest.param(
            [NEAR_ZONED, MATE_ZONED, FAR_ZONED],
            CLOSE,
            ON,
            Choice((NEAR_ZONED,), Tier.SAME_NODE, Why.DAEMON_SET_ON_NODE),
            id="the DaemonSet rule goes before zone hints",
        ),
        pytest.param(
            [UNREADY, MATE_ZONED, FAR_ZONED],
            CLOSE,
            ON,
            Choice((MATE_ZONED,), Tier.SAME_ZONE, Why.ZONE_HINTS),
            id="zone hints where the DaemonSet has nothing ready here",
        ),
        pytest.param(
            [NEAR_DRAINING, FAR],
            None,
            ON,
            Choice((FAR,), Tier.CLUSTER, Why.ALL_READY),
            id="a draining pod of the DaemonSet isn't stayed with",
        ),
        pytest.param(
            [NEAR_ZONED, MATE_ZONED, FAR_ZONED],
            CLOSE,
            SAME_NODE_OFF,
            Choice((NEAR_ZONED, MATE_ZONED), Tier.SAME_ZONE, Why.ZONE_HINTS),
            id="zone hints",
        ),
        *(
            pytest.param(
                [NEAR, ZONE_MATE, FAR, UNREADY],
                distribution,
                SAME_NODE_OFF,
                Choice((NEAR, ZONE_MATE), Tier.SAME_ZONE, Why.ENDPOINT_ZONES),
                id=f"{distribution} without any hint: own zone",
            )
            for distribution in (CLOSE, SAME_ZONE)
        ),
        pytest.param(
            [NEAR, ZONE_MATE, FAR],
            SAME_NODE,
            SAME_NODE_OFF,
            Choice((NEAR,), Tier.SAME_NODE, Why.ENDPOINT_NODES),
            id="PreferSameNode without any hint: own node",
        ),
        pytest.param(
            [ZONE_MATE, FAR],
            SAME_NODE,
            SAME_NODE_OFF,
            Choice((ZONE_MATE,), Tier.SAME_ZONE, Why.ENDPOINT_ZONES),
            id="PreferSameNode without any hint and nothing here: own zone",
        ),
        pytest.param(
            [FAR, endpoint("10.244.0.9", zone="zc")],
            SAME_NODE,
            SAME_NODE_OFF,
            Choice((FAR, endpoint("10.244.0.9", zone="zc")), Tier.CLUSTER, Why.ALL_READY),
            id="PreferSameNode without any hint and nothing near: everywhere",
        ),
        pytest.param(
            [NEAR, NOWHERE],
            SAME_NODE,
            SAME_NODE_OFF,
            Choice((NEAR, NOWHERE), Tier.CLUSTER, Why.ALL_READY),
            id="one endpoint of unknown origin voids the own zones and nodes, as it would the hints",
        ),
        pytest.param(
            [NEAR, ZONE_MATE, FAR],
            None,
            SAME_NODE_OFF,
            Choice((NEAR, ZONE_MATE, FAR), Tier.CLUSTER, Why.ALL_READY),
            id="no preference",
        ),
        pytest.param(
            [NEAR, ZONE_MATE, FAR_ZONED],
            CLOSE,
            SAME_NODE_OFF,
            Choice((NEAR, ZONE_MATE, FAR_ZONED), Tier.CLUSTER, Why.ALL_READY),
            id="a single hint keeps to kube-proxy's rule",
        ),
        pytest.param(
            [NEAR, FAR, hinted(UNREADY, zone="za")],
            CLOSE,
            SAME_NODE_OFF,
            Choice((NEAR, FAR), Tier.CLUSTER, Why.ALL_READY),
            id="a hint of an unready endpoint keeps to kube-proxy's rule, too",
        ),
        pytest.param(
            [NEAR_DRAINING, FAR_DRAINING, UNREADY, TERMINATING],
            CLOSE,
            ON,
            Choice((NEAR_DRAINING, FAR_DRAINING), Tier.DRAINING, Why.DRAINING),
            id="draining ones of anywhere",
        ),
        pytest.param(
            [UNREADY, TERMINATING], CLOSE, ON, Choice((), Tier.NONE, Why.NO_ENDPOINTS), id="nothing that serves"
        ),
    ],
)
def test_cluster_endpoints(
    endpoints: list[Endpoint], distribution: TrafficDistribution | None, same_node: SameNode, expected: Choice
) -> None:
    assert expected == choose_cluster_endpoints(endpoints, distribution, HERE, same_node)


@pytest.mark.parametrize(
    "place", [pytest.param(Place(NodeName(""), None), id="unknown"), pytest.param(Place(NodeName("n9"), None), id="n9")]
)
@pytest.mark.parametrize("distribution", [None, *TrafficDistribution])
def test_a_place_without_a_node_or_zone_is_near_to_nothing(
    place: Place, distribution: TrafficDistribution | None
) -> None:
    choice = choose_cluster_endpoints([NOWHERE, FAR], distribution, place, ON)

    assert choice == Choice((NOWHERE, FAR), Tier.CLUSTER, Why.ALL_READY)


def test_an_unknown_node_of_ours_is_not_that_of_an_endpoint_without_one() -> None:
    assert not is_local(endpoint(node=""), Place(NodeName(""), None))
    assert not is_local(endpoint(node=None), Place(NodeName(""), None))
    assert is_local(NEAR, HERE)


@pytest.mark.parametrize(
    ("endpoints", "tier", "why"),
    [
        pytest.param([NEAR, NEAR_DRAINING, FAR], Tier.LOCAL_POLICY, Why.LOCAL_READY, id="ready here"),
        pytest.param([NEAR_DRAINING, FAR], Tier.DRAINING, Why.LOCAL_DRAINING, id="draining here"),
        pytest.param([FAR], Tier.NONE, Why.NO_LOCAL_ENDPOINTS, id="only elsewhere"),
        pytest.param([NOWHERE], Tier.NONE, Why.NO_LOCAL_ENDPOINTS, id="only without a node"),
        pytest.param([UNREADY], Tier.NONE, Why.NO_ENDPOINTS, id="nowhere"),
    ],
)
def test_tiers_of_policy_local(endpoints: list[Endpoint], tier: Tier, why: Why) -> None:
    local = service(internal_traffic_policy=TrafficPolicy.LOCAL)

    decision = choose_port(endpoints, local, HTTP, HERE, SAME_NODE_OFF).cluster_ip

    assert (tier, why) == (decision.choice.tier, decision.choice.why)


@pytest.mark.parametrize(
    ("fields", "external"),
    [
        pytest.param({}, Why.NO_FRONTEND, id="a plain ClusterIP"),
        pytest.param({"load_balancer_ips": ("192.0.2.1",)}, Why.ALL_READY, id="a left-over load-balancer IP"),
        pytest.param(
            {"type": "LoadBalancer", "load_balancer_ips": ("192.0.2.1",)},
            Why.NO_LOCAL_ENDPOINTS,
            id="a load balancer",
        ),
        pytest.param({"type": "LoadBalancer"}, Why.NO_FRONTEND, id="a load balancer without an IP or node port"),
        pytest.param({"external_ips": ("192.0.2.1",)}, Why.NO_LOCAL_ENDPOINTS, id="an external IP"),
    ],
)
def test_external_policy_counts_where_there_is_an_outside(fields: dict[str, object], external: Why) -> None:
    local = service(external_traffic_policy=TrafficPolicy.LOCAL, **fields)

    assert external is choose_port([FAR], local, HTTP, HERE, SAME_NODE_OFF).external.choice.why


@pytest.mark.parametrize(
    ("endpoints", "why", "reasons"),
    [
        pytest.param([NEAR, FAR], Why.ALL_READY, [], id="nobody"),
        pytest.param(
            [NEAR, UNREADY, TERMINATING, NEAR_DRAINING],
            Why.ALL_READY,
            [LeftOut.NOT_READY, LeftOut.TERMINATING, LeftOut.DRAINING],
            id="by condition",
        ),
        pytest.param([UNREADY, NEAR_DRAINING], Why.DRAINING, [LeftOut.NOT_READY], id="unready while others drain"),
        pytest.param(
            [NEAR_HINTED, FAR_HINTED], Why.NODE_HINTS, [LeftOut.HINTED_ELSEWHERE], id="hinted for another node"
        ),
        pytest.param([NEAR_ZONED, FAR_ZONED], Why.ZONE_HINTS, [LeftOut.HINTED_ELSEWHERE], id="hinted for another zone"),
        pytest.param([NEAR, FAR], Why.ENDPOINT_ZONES, [LeftOut.OTHER_ZONE], id="in another zone"),
        pytest.param([UNREADY], Why.NO_ENDPOINTS, [LeftOut.NOT_READY], id="nothing that serves"),
    ],
)
def test_endpoints_left_out_of_cluster_traffic(endpoints: list[Endpoint], why: Why, reasons: list[LeftOut]) -> None:
    choice = choose_cluster_endpoints(endpoints, CLOSE if why is Why.ENDPOINT_ZONES else None, HERE, SAME_NODE_OFF)

    assert choice.why is why
    assert reasons == [reason for _endpoint, reason in left_out(endpoints, choice, HERE)]


def test_endpoints_left_out_by_staying_on_the_node() -> None:
    for choice in (
        choose_cluster_endpoints([NEAR, FAR, FAR_DRAINING], CLOSE, HERE, ON),
        choose_cluster_endpoints([NEAR, FAR, FAR_DRAINING], SAME_NODE, HERE, SAME_NODE_OFF),
    ):
        assert left_out([NEAR, FAR, FAR_DRAINING], choice, HERE) == (
            (FAR, LeftOut.OTHER_NODE),
            (FAR_DRAINING, LeftOut.DRAINING),
        )


@pytest.mark.parametrize(
    ("endpoints", "reasons"),
    [
        pytest.param(
            [NEAR, NEAR_DRAINING, FAR, FAR_DRAINING, UNREADY],
            [LeftOut.DRAINING, LeftOut.OTHER_NODE, LeftOut.OTHER_NODE, LeftOut.NOT_READY],
            id="ready here",
        ),
        pytest.param([NEAR_DRAINING, FAR], [LeftOut.OTHER_NODE], id="draining here"),
        pytest.param([FAR, TERMINATING], [LeftOut.OTHER_NODE, LeftOut.TERMINATING], id="dropped"),
    ],
)
def test_endpoints_left_out_by_policy_local(endpoints: list[Endpoint], reasons: list[LeftOut]) -> None:
    local = service(internal_traffic_policy=TrafficPolicy.LOCAL)

    choice = choose_port(endpoints, local, HTTP, HERE, SAME_NODE_OFF).cluster_ip.choice

    assert reasons == [reason for _endpoint, reason in left_out(endpoints, choice, HERE)]


def test_all_endpoints_are_left_out_where_there_is_no_frontend() -> None:
    choice = choose_port([NEAR, FAR_DRAINING], service(), HTTP, HERE, SAME_NODE_OFF).external.choice

    assert left_out([NEAR, FAR_DRAINING], choice, HERE) == (
        (NEAR, LeftOut.NO_FRONTEND),
        (FAR_DRAINING, LeftOut.NO_FRONTEND),
    )
