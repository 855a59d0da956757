"""`plan -o json`: the fields that other tools read, and their values."""

from typing import Any

import msgspec
import pytest

from endpointslice.snapshot import EMPTY, Changed, Snapshot, apply_events
from endpointslice.types import CIDR, IP, Family, Kind, Node, NodeName, Object, Skipped, TrafficPolicy, Zone
from proxy.planner.settings import Settings
from proxy.report import report_plan
from tests.builders import HTTP_NODE_PORT, a_slice, service, slice_endpoint
from tests.strategies import kind_of

LOCAL = TrafficPolicy.LOCAL
N1 = Node(NodeName("n1"), Zone("za"))
HERE = slice_endpoint("10.244.0.9", node=NodeName("n1"), zone=Zone("za"))
THERE = slice_endpoint("10.244.0.10", node=NodeName("n2"), zone=Zone("zb"))
UNREADY = slice_endpoint("10.244.0.11", "X", node=NodeName("n2"))


def world(*objects: Object) -> Snapshot:
    return apply_events(EMPTY, [Changed(kind_of(one), one.name, one) for one in objects])[0]


def report(snapshot: Snapshot, cluster_cidr: str = "") -> dict[str, Any]:
    """The report as a reader of the JSON sees it."""
    cidrs = (CIDR(cluster_cidr),) if cluster_cidr else ()
    body = msgspec.json.encode(report_plan(snapshot, Settings(NodeName("n1"), cidrs)))
    return msgspec.json.decode(body, type=dict[str, Any])


def test_the_whole_report_of_a_small_world() -> None:
    snapshot = world(service(), a_slice([HERE, THERE, UNREADY]), N1)

    assert report(snapshot) == {
        "node": "n1",
        "zone": "za",
        "services": [
            {
                "service": "default/web",
                "port": "http",
                "protocol": "TCP",
                "family": "IPv4",
                "frontends": [
                    {
                        "kind": "ClusterIP",
                        "ip": "10.96.0.10",
                        "port": 80,
                        "from": "any",
                        "verdict": "dnat",
                        "endpoints": ["10.244.0.10:8080", "10.244.0.9:8080"],
                        "tier": "cluster",
                        "reason": "all-ready",
                        "source": "kept",
                        "family": "IPv4",
                        "source_ranges": [],
                    }
                ],
                "left_out": [{"endpoint": "10.244.0.11:8080", "reason": "not-ready"}],
                "same_node": "no-preference",
                "affinity": None,
            }
        ],
        "skipped": [],
    }


def frontends(snapshot: Snapshot) -> list[tuple[Any, ...]]:
    """Kind, ip, from, verdict, endpoints and tier of the only Service port."""
    (port,) = report(snapshot)["services"]
    names = ("kind", "ip", "from", "verdict", "endpoints", "tier")
    return [tuple(frontend[name] for name in names) for frontend in port["frontends"]]


NODE_PORT_LOCAL = service(type="NodePort", ports=(HTTP_NODE_PORT,), external_traffic_policy=LOCAL)


def test_a_frontend_is_split_by_client_only_where_the_answer_differs() -> None:
    split = frontends(world(NODE_PORT_LOCAL, a_slice([HERE, THERE]), N1))
    whole = frontends(world(NODE_PORT_LOCAL, a_slice([HERE]), N1))

    both = ["10.244.0.10:8080", "10.244.0.9:8080"]
    assert split == [
        ("ClusterIP", "10.96.0.10", "any", "dnat", both, "cluster"),
        ("NodePort", None, "outside", "dnat", ["10.244.0.9:8080"], "local-policy"),
        ("NodePort", None, "this-node", "dnat", both, "cluster"),
    ]
    assert [(row[0], row[2]) for row in whole] == [
        ("ClusterIP", "any"),
        ("NodePort", "outside"),  # the tier differs: local-policy outside, cluster for our own
        ("NodePort", "this-node"),
    ]


def test_drops_and_refusals_have_no_endpoints() -> None:
    dropped = frontends(world(NODE_PORT_LOCAL, a_slice([THERE]), N1))
    refused = frontends(world(service(external_ips=(IP("198.51.100.7"),)), N1))

    assert ("NodePort", None, "outside", "drop", [], "none") in dropped
    assert refused == [
        ("ClusterIP", "10.96.0.10", "any", "reject", [], "none"),
        ("ExternalIP", "198.51.100.7", "any", "reject", [], "none"),
    ]


def test_a_cluster_cidr_tells_pods_from_others() -> None:
    (port,) = report(world(service(), a_slice([HERE]), N1), "10.244.0.0/16")["services"]

    assert [(frontend["from"], frontend["source"]) for frontend in port["frontends"]] == [
        ("outside", "masqueraded"),
        ("this-node", "kept"),
    ]


def test_an_unnamed_port_goes_by_its_number_and_ipv6_stands_in_brackets() -> None:
    unnamed = msgspec.structs.replace(HTTP_NODE_PORT, name="")
    of = service(ports=(unnamed,), cluster_ips=(IP("fd00::a"),), load_balancer_ips=(IP("2001:db8::7"),))
    piece = a_slice(
        [slice_endpoint("fd00::1")],
        family=Family.IPV6,
        ports=(msgspec.structs.replace(a_slice().ports[0], name=""),),
    )

    (port,) = report(world(of, piece))["services"]

    assert port["port"] == "80"
    assert [(f["kind"], f["ip"], f["port"], f["endpoints"]) for f in port["frontends"]] == [
        ("ClusterIP", "fd00::a", 80, ["[fd00::1]:8080"]),
        ("LoadBalancerIP", "2001:db8::7", 80, ["[fd00::1]:8080"]),
        ("NodePort", None, 30080, ["[fd00::1]:8080"]),
    ]


def test_what_is_not_used_is_told_and_a_frontend_that_another_service_has() -> None:
    shared = IP("198.51.100.7")
    older = service("default/a", cluster_ips=(IP("10.96.0.1"),), external_ips=(shared,), created="2024")
    broken = Changed(Kind.SERVICE, "default/x", None, (Skipped("Service default/x", "headless", "clusterIP: None"),))
    snapshot, _ = apply_events(world(older, service(external_ips=(shared,), created="2025")), [broken])

    told = report(snapshot)

    assert told["skipped"] == [
        {"object": "Service default/x", "reason": "headless", "detail": "clusterIP: None"},
        {
            "object": "Service default/web ExternalIP 198.51.100.7:80/TCP",
            "reason": "frontend-taken",
            "detail": "default/a has it",
        },
    ]
    assert [[f["kind"] for f in port["frontends"]] for port in told["services"]] == [
        ["ClusterIP", "ExternalIP"],
        ["ClusterIP"],
    ]


def test_a_lost_node_port_is_told_without_an_address() -> None:
    older = service("default/a", cluster_ips=(IP("10.96.0.1"),), ports=(HTTP_NODE_PORT,), created="2024")

    told = report(world(older, service(ports=(HTTP_NODE_PORT,), created="2025")))

    assert [part["object"] for part in told["skipped"]] == ["Service default/web NodePort *:30080/TCP"]


@pytest.mark.parametrize(
    ("node", "zone"),
    [pytest.param(None, None, id="a Node that isn't known"), pytest.param(Node(NodeName("n1")), None, id="no label")],
)
def test_a_zone_that_is_not_known_is_null(node: Node | None, zone: str | None) -> None:
    snapshot = world(*([node] if node is not None else []))

    assert (report(snapshot)["zone"], report(snapshot)["services"]) == (zone, [])
