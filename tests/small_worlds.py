"""Hypothesis strategies of worlds so small that Services clash, share pods and change hands; quick to draw."""

from hypothesis import strategies as st

from endpointslice.snapshot import Changed
from endpointslice.types import (
    CIDR,
    IP,
    DaemonSet,
    DaemonSetName,
    Family,
    Kind,
    Node,
    NodeName,
    Object,
    Pod,
    PodName,
    Protocol,
    Service,
    ServiceCIDR,
    ServiceName,
    ServicePort,
    Slice,
    SliceEndpoint,
    SliceName,
    SlicePort,
    TrafficDistribution,
    TrafficPolicy,
    Zone,
)

NODE = NodeName("n1")
_SERVICES = [ServiceName(f"default/{letter}") for letter in "abc"]
_PODS = [PodName(f"default/agent-{letter * 5}") for letter in "abcd"]
_PORTS = [
    (ServicePort("http", Protocol.TCP, 80, 30080),),
    (ServicePort("http", Protocol.TCP, 80), ServicePort("dns", Protocol.UDP, 53, 30053)),
    (ServicePort("http", Protocol.TCP, 81, 30080),),
]
_SELECTOR = frozenset({("app", "agent")})

contenders = st.builds(
    Service,
    name=st.sampled_from(_SERVICES),
    cluster_ips=st.sampled_from([(IP("10.96.0.1"),), (IP("10.96.0.2"), IP("fd00:96::2")), (IP("fd00:96::3"),)]),
    ports=st.sampled_from(_PORTS),
    type=st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer"]),
    external_ips=st.sampled_from([(), (IP("198.51.100.7"),), (IP("10.96.0.1"), IP("2001:db8::7"))]),
    load_balancer_ips=st.sampled_from([(), (IP("198.51.100.7"), IP("203.0.113.1"))]),
    source_ranges=st.sampled_from(
        [(), (CIDR("10.0.0.0/8"),), (CIDR("10.1.0.0/16"), CIDR("192.0.2.0/24"), CIDR("fd00::/8"))]
    ),
    affinity_timeout_s=st.sampled_from([None, None, 60, 10800]),
    internal_traffic_policy=st.sampled_from(TrafficPolicy),
    external_traffic_policy=st.sampled_from(TrafficPolicy),
    traffic_distribution=st.sampled_from([None, *TrafficDistribution]),
    selector=st.just(_SELECTOR),
    created=st.sampled_from(["", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"]),
)
_endpoints = {
    family: st.builds(
        SliceEndpoint,
        ip=st.sampled_from([IP(f"{prefix}{last}") for last in range(1, 5)]),
        ready=st.sampled_from([True, True, False]),
        serving=st.booleans(),
        terminating=st.booleans(),
        node=st.sampled_from([NODE, NodeName("n2"), None]),
        zone=st.sampled_from([Zone("za"), Zone("zb")]),
        for_zones=st.sampled_from([frozenset(), frozenset({Zone("za")})]),
        pod=st.sampled_from(_PODS),
    )
    for family, prefix in ((Family.IPV4, "10.244.0."), (Family.IPV6, "fd00:244::"))
}


@st.composite
def small_slices(draw: st.DrawFn) -> Slice:
    """One of two slices of a Service, of either family."""
    family = draw(st.sampled_from(Family))
    service = draw(st.sampled_from(_SERVICES))
    return Slice(
        name=SliceName(f"{service}-{draw(st.sampled_from('12'))}"),
        service=service,
        family=family,
        ports=(SlicePort("http", Protocol.TCP, 8080), SlicePort("dns", Protocol.UDP, 5353)),
        endpoints=tuple(draw(st.lists(_endpoints[family], max_size=4))),
    )


_nodes = st.builds(
    Node,
    name=st.sampled_from([NODE, NodeName("n2"), NodeName("n3")]),
    zone=st.sampled_from([Zone("za"), Zone("zb"), None]),
    addresses=st.sampled_from([(), (IP("192.0.2.1"), IP("2001:db8::1")), (IP("192.0.2.2"),)]),
    ready=st.booleans(),
)
_daemon_sets = st.builds(
    DaemonSet,
    name=st.just(DaemonSetName("default/agent")),
    template_labels=st.sampled_from([_SELECTOR, frozenset()]),
    desired=st.sampled_from([None, 1, 4]),
)
_pods = st.builds(Pod, name=st.sampled_from(_PODS), daemon_set=st.sampled_from([None, DaemonSetName("default/agent")]))
_service_cidrs = st.builds(
    ServiceCIDR,
    name=st.just("kubernetes"),
    cidrs=st.sampled_from([(CIDR("10.96.0.0/16"), CIDR("fd00:96::/112")), (CIDR("10.96.0.0/12"),)]),
)


@st.composite
def small_changes(draw: st.DrawFn) -> Changed:
    """An object of such a world as it is from now on, or its end."""
    kind, objects = draw(st.sampled_from(_OF_EACH_KIND))
    value = draw(objects)
    gone = draw(st.integers(0, 4)) == 0
    return Changed(kind, value.name, None if gone else value)


_OF_EACH_KIND: list[tuple[Kind, st.SearchStrategy[Object]]] = [
    *[(Kind.SERVICE, contenders)] * 3,
    *[(Kind.ENDPOINT_SLICE, small_slices())] * 3,
    (Kind.NODE, _nodes),
    (Kind.DAEMON_SET, _daemon_sets),
    (Kind.POD, _pods),
    (Kind.SERVICE_CIDR, _service_cidrs),
]
