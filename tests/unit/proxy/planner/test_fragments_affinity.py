"""The elements that session affinity adds to a Service's others."""

import pytest

from endpointslice.topology import Tier
from endpointslice.types import IP, NodeName, Protocol, Service, ServicePort, SliceEndpoint, TrafficPolicy
from proxy.kernel.affinities import name_affinity
from proxy.kernel.ruleset import SetName
from proxy.planner.fragments import Label
from tests.builders import HTTP, HTTP_NODE_PORT, service, slice_endpoint
from tests.elements_text import OF_AFFINITY, show_elements
from tests.rendered import HERE, render

HERE_R = slice_endpoint("10.244.0.1", "R", node=HERE)
THERE_R = slice_endpoint("10.244.1.1", "R", node=NodeName("n2"))
K = name_affinity("default/web", "http", Protocol.TCP).decode()
STICKY = service(affinity_timeout_s=60)
EVERYWHERE = service(
    type="NodePort",
    ports=(HTTP_NODE_PORT,),
    external_ips=(IP("198.51.100.7"),),
    external_traffic_policy=TrafficPolicy.LOCAL,
    affinity_timeout_s=10800,
)
ROWS = [
    pytest.param(
        STICKY,
        [HERE_R, THERE_R],
        """
        affinities: K -> TCP 60
        by_source_ports: 10.96.0.10 TCP 80
        binding_addresses: 10.96.0.10
        binding_ports: TCP 80
        affinity_ports: 10.96.0.10 TCP 80 -> jump sticky_K
        record_ports: 10.96.0.10 TCP 80 -> goto record_K
        forget_ports: 10.96.0.10 TCP 80 -> goto forget_K
        bound_endpoints: 10.96.0.10 TCP 80 10.244.0.1 8080
        bound_endpoints: 10.96.0.10 TCP 80 10.244.1.1 8080
        """,
        id="a ClusterIP looks for bindings, and may bind to each of its endpoints",
    ),
    pytest.param(STICKY, [], "", id="without endpoints there is nothing to be bound to"),
    pytest.param(
        EVERYWHERE,
        [HERE_R, THERE_R],
        """
        affinities: K -> TCP 10800
        by_source_ports: 10.96.0.10 TCP 80
        binding_addresses: 10.96.0.10
        binding_addresses: 198.51.100.7
        binding_ports: TCP 80
        binding_ports: TCP 30080
        affinity_ports: 10.96.0.10 TCP 80 -> jump sticky_K
        affinity_ports: 198.51.100.7 TCP 80 -> jump sticky_K
        affinity_node_ports: TCP 30080 -> jump sticky_K
        record_ports: 10.96.0.10 TCP 80 -> goto record_K
        forget_ports: 10.96.0.10 TCP 80 -> goto forget_K
        record_ports: 198.51.100.7 TCP 80 -> goto record_K
        forget_ports: 198.51.100.7 TCP 80 -> goto forget_K
        record_node_ports: TCP 30080 -> goto record_K
        forget_node_ports: TCP 30080 -> goto forget_K
        bound_endpoints: 10.96.0.10 TCP 80 10.244.0.1 8080
        bound_endpoints: 10.96.0.10 TCP 80 10.244.1.1 8080
        bound_endpoints: 198.51.100.7 TCP 80 10.244.0.1 8080
        node_port_bound_endpoints: TCP 30080 10.244.0.1 8080
        local_source_affinity_ports: 198.51.100.7 TCP 80 -> jump sticky_K
        local_source_affinity_node_ports: TCP 30080 -> jump sticky_K
        local_source_bound_endpoints: 198.51.100.7 TCP 80 10.244.0.1 8080
        local_source_bound_endpoints: 198.51.100.7 TCP 80 10.244.1.1 8080
        local_source_node_port_bound_endpoints: TCP 30080 10.244.0.1 8080
        local_source_node_port_bound_endpoints: TCP 30080 10.244.1.1 8080
        """,
        id="all frontends share one binding, and each only allows its own policy's endpoints",
    ),
]


@pytest.mark.parametrize(("of", "endpoints", "expected"), ROWS)
def test_what_affinity_adds(of: Service, endpoints: list[SliceEndpoint], expected: str) -> None:
    with_it = show_elements(render(of, *endpoints).elements)
    without = show_elements(render(service_without(of), *endpoints).elements)

    assert with_it - without == {line.strip().replace("K", K) for line in expected.strip().splitlines() if line}
    assert without <= with_it


def service_without(of: Service) -> Service:
    """The same without affinity."""
    return service(
        type=of.type, ports=of.ports, external_ips=of.external_ips, external_traffic_policy=of.external_traffic_policy
    )


def test_each_of_several_ports_has_its_own_bindings() -> None:
    of = service(ports=(HTTP, ServicePort("dns", Protocol.UDP, 53)), affinity_timeout_s=7)

    shown = show_elements(render(of, HERE_R).elements)

    assert {line.partition(" -> ")[2] for line in shown if line.startswith("affinities")} == {"TCP 7", "UDP 7"}
    assert len({line.partition(" -> ")[2] for line in shown if line.startswith("affinity_ports")}) == 2


def test_connections_are_counted_where_bindings_are_looked_for_and_not_once_more_where_there_is_none() -> None:
    labels = render(EVERYWHERE, HERE_R).labels

    by_set = {set_id.name: label for (set_id, _key), label in labels.items()}
    for name, label in by_set.items():
        assert label.counted == (name in OF_AFFINITY)
    assert by_set[SetName.AFFINITY_NODE_PORTS] == Label(EVERYWHERE.name, "http", Tier.LOCAL_POLICY)
    assert by_set[SetName.LOCAL_SOURCE_AFFINITY_NODE_PORTS] == Label(EVERYWHERE.name, "http", Tier.CLUSTER)


def test_every_set_of_affinity_has_a_row_above() -> None:
    named = {line.split(":")[0].strip() for row in ROWS for line in str(row.values[-1]).strip().splitlines()}

    assert named - {SetName.BY_SOURCE_PORTS} == OF_AFFINITY
