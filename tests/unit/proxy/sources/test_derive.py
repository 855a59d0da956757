from typing import Any

import pytest

from endpointslice.types import Family, ServiceName, Slice, SliceEndpoint
from proxy.sources.derive import derive_slices, read_ingredient

READY = [{"type": "Ready", "status": "True"}]
NOT_READY = [{"type": "Ready", "status": "False"}]
NODES = [
    {"kind": "Node", "metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "za"}}},
    {"kind": "Node", "metadata": {"name": "n2"}},
]


def service(**spec: object) -> dict[str, Any]:
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}], **spec}
    return {"kind": "Service", "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}


def pod(name: str, *ips: str, **parts: dict[str, Any]) -> dict[str, Any]:
    """A pod on n1, ready; `parts` replace parts of it."""
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "labels": {"app": "web", "tier": "front"}}
    return {
        "kind": "Pod",
        "metadata": metadata | parts.get("metadata", {}),
        "spec": {"nodeName": "n1"} | parts.get("spec", {}),
        "status": {"podIPs": [{"ip": ip} for ip in ips], "conditions": READY} | parts.get("status", {}),
    }


def derive(*documents: dict[str, Any], with_slices: set[str] = frozenset()) -> list[Slice]:  # type: ignore[assignment]
    ingredients = [ingredient for document in (*documents, *NODES) if (ingredient := read_ingredient(document))]
    changes = derive_slices(ingredients, {ServiceName(name) for name in with_slices})
    return [change.object for change in changes if isinstance(change.object, Slice)]


def endpoints_of(*documents: dict[str, Any]) -> tuple[SliceEndpoint, ...]:
    return tuple(endpoint for found in derive(*documents) for endpoint in found.endpoints)


def test_each_family_gets_its_slice() -> None:
    four, six = derive(service(), pod("a", "10.244.1.5", "fd00::5"), pod("b", "10.244.1.6"))

    assert (four.name, four.service, four.family) == ("shop/web-derived-ipv4", "shop/web", Family.IPV4)
    assert (six.name, six.service, six.family) == ("shop/web-derived-ipv6", "shop/web", Family.IPV6)
    assert [endpoint.ip for endpoint in four.endpoints] == ["10.244.1.5", "10.244.1.6"]
    assert [endpoint.ip for endpoint in six.endpoints] == ["fd00::5"]


def test_an_endpoint_knows_its_pod_its_node_and_its_zone() -> None:
    (endpoint,) = endpoints_of(service(), pod("a", "10.244.1.5"))

    assert (endpoint.pod, endpoint.pod_uid) == ("shop/a", "uid-a")
    assert (endpoint.node, endpoint.zone) == ("n1", "za")


@pytest.mark.parametrize(
    ("documents", "count"),
    [
        pytest.param([service(), pod("a", "10.0.0.1")], 1, id="a matching pod"),
        pytest.param([service(), pod("a", "10.0.0.1", metadata={"labels": {"app": "api"}})], 0, id="another label"),
        pytest.param([service(), pod("a", "10.0.0.1", metadata={"labels": None})], 0, id="no labels"),
        pytest.param([service(), pod("a", "10.0.0.1", metadata={"namespace": "x"})], 0, id="another namespace"),
        pytest.param([service(), pod("a")], 0, id="a pod without address"),
        pytest.param([service(), pod("a", status={"podIP": "10.0.0.1"})], 1, id="an address in podIP only"),
        pytest.param([service(), pod("a", "10.0.0.1", status={"podIP": "10.0.0.1"})], 1, id="an address given twice"),
        pytest.param([service(), pod("a", "10.0.0.1", status={"phase": "Succeeded"})], 0, id="a pod that is done"),
        pytest.param([service(selector={}), pod("a", "10.0.0.1")], 0, id="an empty selector"),
        pytest.param([service(selector=None), pod("a", "10.0.0.1")], 0, id="no selector"),
        pytest.param([service(type="ExternalName"), pod("a", "10.0.0.1")], 0, id="a Service that is only a name"),
        pytest.param([service(selector="web"), pod("a", "10.0.0.1")], 0, id="a broken Service"),
        pytest.param([service(), pod("a", "10.0.0.1", spec={"containers": "none"})], 0, id="a broken pod"),
    ],
)
def test_which_pods_count(documents: list[dict[str, Any]], count: int) -> None:
    assert len(endpoints_of(*documents)) == count


def test_a_service_with_slices_of_its_own_gets_none() -> None:
    documents = service(), pod("a", "10.0.0.1")

    assert derive(*documents)
    assert derive(*documents, with_slices={"shop/web"}) == []


@pytest.mark.parametrize(
    ("pod_parts", "publish", "ready", "serving", "terminating"),
    [
        pytest.param({"status": {"conditions": READY}}, False, True, True, False, id="ready"),
        pytest.param({"status": {"conditions": NOT_READY}}, False, False, False, False, id="not ready"),
        pytest.param(
            {"status": {"conditions": [{"type": "Initialized", "status": "True"}]}},
            False,
            False,
            False,
            False,
            id="no Ready among its conditions",
        ),
        pytest.param(
            {"status": {"conditions": []}}, False, True, True, False, id="no condition at all: as written by hand"
        ),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, False, False, True, True, id="draining"
        ),
        pytest.param({"status": {"conditions": NOT_READY}}, True, True, False, False, id="published though not ready"),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
            True,
            True,
            True,
            True,
            id="published though draining",
        ),
    ],
)
def test_conditions(pod_parts: dict[str, Any], publish: bool, ready: bool, serving: bool, terminating: bool) -> None:  # noqa: FBT001  # columns of the table
    (endpoint,) = endpoints_of(service(publishNotReadyAddresses=publish), pod("a", "10.0.0.1", **pod_parts))

    assert (endpoint.ready, endpoint.serving, endpoint.terminating) == (ready, serving, terminating)


@pytest.mark.parametrize(
    ("distribution", "node", "conditions", "zones", "nodes"),
    [
        pytest.param(None, "n1", READY, set(), set(), id="none asked for"),
        pytest.param("PreferClose", "n1", READY, {"za"}, set(), id="PreferClose: the zone"),
        pytest.param("PreferSameZone", "n1", READY, {"za"}, set(), id="PreferSameZone: the zone"),
        pytest.param("PreferSameNode", "n1", READY, {"za"}, {"n1"}, id="PreferSameNode: the node too"),
        pytest.param("Nearest", "n1", READY, set(), set(), id="a word that nobody knows"),
        pytest.param("PreferSameNode", "n1", NOT_READY, set(), set(), id="not ready: no hints"),
        pytest.param("PreferSameNode", "n2", READY, set(), {"n2"}, id="a node without zone"),
        pytest.param("PreferSameNode", None, READY, set(), set(), id="no node"),
    ],
)
def test_hints(
    distribution: str | None, node: str | None, conditions: object, zones: set[str], nodes: set[str]
) -> None:
    spec = {"trafficDistribution": distribution} if distribution else {}
    (endpoint,) = endpoints_of(
        service(**spec), pod("a", "10.0.0.1", spec={"nodeName": node}, status={"conditions": conditions})
    )

    assert (set(endpoint.for_zones), set(endpoint.for_nodes)) == (zones, nodes)


def ports_of(target_port: object, *containers: object, **pod_spec: object) -> list[tuple[str, str, int]]:
    ports = [{"name": "web", "port": 80, "protocol": "TCP", "targetPort": target_port}]
    found = derive(service(ports=ports), pod("a", "10.0.0.1", spec={"containers": list(containers), **pod_spec}))
    return [(port.name, port.protocol, port.port) for piece in found for port in piece.ports]


HTTP = {"ports": [{"name": "http", "containerPort": 8080}]}
HTTP_UDP = {"ports": [{"name": "http", "containerPort": 8080, "protocol": "UDP"}]}


@pytest.mark.parametrize(
    ("target_port", "containers", "ports"),
    [
        pytest.param(8081, [], [("web", "TCP", 8081)], id="a number"),
        pytest.param(0, [], [("web", "TCP", 80)], id="none: as the Service's port"),
        pytest.param("http", [{}, HTTP], [("web", "TCP", 8080)], id="a name"),
        pytest.param("http", [HTTP_UDP], [], id="a name of another protocol"),
        pytest.param("admin", [HTTP], [], id="a name that the pod doesn't have"),
    ],
)
def test_target_ports(target_port: object, containers: list[object], ports: list[tuple[str, str, int]]) -> None:
    assert ports_of(target_port, *containers) == ports


def test_a_sidecars_port_has_a_name_too() -> None:
    assert ports_of("http", initContainers=[HTTP]) == [("web", "TCP", 8080)]


def test_pods_whose_named_ports_differ_are_in_different_slices() -> None:
    other = {"ports": [{"name": "http", "containerPort": 9090}]}
    found = derive(
        service(ports=[{"port": 80, "targetPort": "http"}]),
        pod("a", "10.0.0.1", spec={"containers": [HTTP]}),
        pod("b", "10.0.0.2", spec={"containers": [other]}),
    )

    assert [(piece.name, piece.ports[0].port, piece.endpoints[0].ip) for piece in found] == [
        ("shop/web-derived-ipv4", 8080, "10.0.0.1"),
        ("shop/web-derived-ipv4-2", 9090, "10.0.0.2"),
    ]


def test_a_label_that_would_hide_a_slice_is_not_taken_over_from_its_service() -> None:
    labelled = service()
    labelled["metadata"]["labels"] = {"service.kubernetes.io/headless": ""}

    assert len(derive(labelled, pod("a", "10.0.0.1"))) == 1
