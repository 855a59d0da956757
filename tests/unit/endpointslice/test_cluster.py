import msgspec
import pytest

from endpointslice import api
from endpointslice.cluster import convert_daemon_set, convert_node, convert_pod, convert_service_cidr
from endpointslice.reasons import Converted
from endpointslice.types import (
    CIDR,
    IP,
    DaemonSet,
    DaemonSetName,
    Kind,
    Node,
    NodeName,
    Pod,
    PodName,
    ServiceCIDR,
    Skipped,
    Zone,
)
from tests.builders import Json, object_json


def node_json(**fields: object) -> Json:
    return object_json(Kind.NODE, "n1", **fields)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, {}, id="a bare name"),
        pytest.param({"labels": {"topology.kubernetes.io/zone": "za"}}, {"zone": Zone("za")}, id="zone"),
        pytest.param({"labels": {"topology.kubernetes.io/zone": ""}}, {}, id="an empty zone is none"),
        pytest.param({"labels": {"a": "b"}}, {}, id="no zone label"),
        pytest.param({"spec": {"podCIDR": "10.244.1.0/24"}}, {"pod_cidrs": (CIDR("10.244.1.0/24"),)}, id="podCIDR"),
        pytest.param(
            {"spec": {"podCIDR": "10.244.1.0/24", "podCIDRs": ["10.244.1.0/24", "fd00::/64"]}},
            {"pod_cidrs": (CIDR("10.244.1.0/24"), CIDR("fd00::/64"))},
            id="podCIDRs go before podCIDR",
        ),
        pytest.param(
            {
                "status": {
                    "addresses": [
                        {"type": "Hostname", "address": "n1"},
                        {"type": "ExternalIP", "address": "192.0.2.1"},
                        {"type": "InternalIP", "address": "10.0.0.01"},
                        {"type": "InternalIP", "address": "fd00::1"},
                        {"type": "ExternalIP", "address": "10.0.0.1"},
                    ]
                }
            },
            {"addresses": (IP("10.0.0.1"), IP("fd00::1"), IP("192.0.2.1"))},
            id="internal addresses first, each once",
        ),
        pytest.param({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, {}, id="ready"),
        pytest.param(
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, {"ready": False}, id="ready unknown"
        ),
        pytest.param(
            {"status": {"conditions": [{"type": "DiskPressure", "status": "False"}]}},
            {"ready": False},
            id="conditions without Ready",
        ),
        pytest.param(
            {"spec": {"taints": [{"key": "other"}, {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]}},
            {"leaving": True},
            id="the autoscaler is about to delete it",
        ),
        pytest.param({"spec": {"taints": [{"key": "other"}, {}]}}, {}, id="tainted otherwise"),
        pytest.param(
            {"metadata": {"name": "n1", "deletionTimestamp": "2026-01-01T00:00:00Z"}}, {"leaving": True}, id="deleted"
        ),
    ],
)
def test_nodes(fields: dict[str, object], expected: dict[str, object]) -> None:
    node = msgspec.structs.replace(Node(NodeName("n1")), **expected)

    assert Converted(node) == convert_node(msgspec.convert(node_json(**fields), api.Node), "n1")


def test_a_nodes_unusable_parts_are_left_out_and_named() -> None:
    wire = node_json(
        spec={"podCIDRs": ["10.244.1.0"]}, status={"addresses": [{"type": "InternalIP", "address": "fe80::1%eth0"}]}
    )

    assert convert_node(msgspec.convert(wire, api.Node), "n1") == Converted(
        Node(NodeName("n1")),
        (
            Skipped("Node n1", "bad-address", "status.addresses[0]: 'fe80::1%eth0'"),
            Skipped("Node n1", "bad-cidr", "spec.podCIDRs[0]: '10.244.1.0'"),
        ),
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, {}, id="a bare name"),
        pytest.param({"spec": {"template": {}}}, {}, id="a template without metadata"),
        pytest.param({"spec": {"template": {"metadata": {"labels": None}}}}, {}, id="a template without labels"),
        pytest.param(
            {"spec": {"template": {"metadata": {"labels": {"app": "web", "v": "1"}}}}},
            {"template_labels": frozenset({("app", "web"), ("v", "1")})},
            id="all labels of the template",
        ),
        pytest.param({"spec": {"updateStrategy": {"type": "OnDelete"}}}, {}, id="no rolling update"),
        pytest.param({"spec": {"updateStrategy": {"rollingUpdate": {}}}}, {}, id="maxUnavailable is 1 by default"),
        pytest.param(
            {"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}}},
            {"max_unavailable": "0"},
            id="maxUnavailable 0",
        ),
        pytest.param(
            {"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}}}},
            {"max_unavailable": "10%"},
            id="maxUnavailable as a percentage",
        ),
        pytest.param({"status": {}}, {}, id="a status without numbers"),
        pytest.param({"status": {"desiredNumberScheduled": 0}}, {"desired": 0}, id="meant for no node"),
        pytest.param({"status": {"desiredNumberScheduled": 3}}, {"desired": 3}, id="meant for three nodes"),
    ],
)
def test_daemon_sets(fields: dict[str, object], expected: dict[str, object]) -> None:
    daemon_set = msgspec.structs.replace(DaemonSet(DaemonSetName("default/agent")), **expected)
    wire = msgspec.convert(object_json(Kind.DAEMON_SET, "default/agent", **fields), api.DaemonSet)

    assert Converted(daemon_set) == convert_daemon_set(wire, "default/agent")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"cidrs": ["10.96.0.0/12", "fd00:1::/112"]},
            Converted(ServiceCIDR("more", (CIDR("10.96.0.0/12"), CIDR("fd00:1::/112")))),
            id="both families",
        ),
        pytest.param(
            {"cidrs": ["10.96.0.0/12", "10.97"]},
            Converted(
                ServiceCIDR("more", (CIDR("10.96.0.0/12"),)),
                (Skipped("ServiceCIDR more", "bad-cidr", "spec.cidrs[1]: '10.97'"),),
            ),
            id="a bad range beside a good one",
        ),
        pytest.param(None, Converted(None, (Skipped("ServiceCIDR more", "no-cidr"),)), id="no spec"),
        pytest.param({"cidrs": None}, Converted(None, (Skipped("ServiceCIDR more", "no-cidr"),)), id="no ranges"),
        pytest.param(
            {"cidrs": ["x"]},
            Converted(
                None,
                (
                    Skipped("ServiceCIDR more", "bad-cidr", "spec.cidrs[0]: 'x'"),
                    Skipped("ServiceCIDR more", "no-cidr"),
                ),
            ),
            id="nothing but bad ranges",
        ),
    ],
)
def test_service_cidrs(spec: object, expected: Converted) -> None:
    wire = msgspec.convert(object_json(Kind.SERVICE_CIDR, "more", spec=spec), api.ServiceCIDR)

    assert expected == convert_service_cidr(wire, "more")


AGENT = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "controller": True}


@pytest.mark.parametrize(
    ("owners", "daemon_set"),
    [
        pytest.param(None, None, id="no owner"),
        pytest.param([], None, id="an empty list of owners"),
        pytest.param([AGENT], "default/agent", id="a DaemonSet of its namespace"),
        pytest.param([{**AGENT, "controller": None}], None, id="an owner that doesn't control it"),
        pytest.param([{**AGENT, "kind": "ReplicaSet"}], None, id="a ReplicaSet"),
        pytest.param([{**AGENT, "apiVersion": "apps.kruise.io/v1"}], None, id="somebody else's DaemonSet"),
        pytest.param([{**AGENT, "controller": False, "kind": "Node"}, AGENT], "default/agent", id="the second owner"),
    ],
)
def test_a_pods_owner_is_the_daemon_set_that_controls_it(owners: object, daemon_set: str | None) -> None:
    wire = msgspec.convert(object_json(Kind.POD, "default/agent-abcde", uid="u", ownerReferences=owners), api.Pod)

    owner = None if daemon_set is None else DaemonSetName(daemon_set)
    assert Converted(Pod(PodName("default/agent-abcde"), "u", owner)) == convert_pod(wire, "default/agent-abcde")


def test_a_pod_without_a_uid_has_an_empty_one() -> None:
    wire = msgspec.convert(object_json(Kind.POD, "default/x"), api.Pod)

    assert Converted(Pod(PodName("default/x"))) == convert_pod(wire, "default/x")
