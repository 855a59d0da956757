"""Hypothesis strategies: values from small pools, so that what matters (the same address, node, zone, name) repeats."""

import itertools
from typing import TypeVar

import msgspec
from hypothesis import strategies as st

from endpointslice.addresses import parse_cidr, parse_ip
from endpointslice.daemonsets import SAME_NODE_OFF, SameNode, SameNodeWhy
from endpointslice.snapshot import Changed
from endpointslice.topology import Place
from endpointslice.types import (
    CIDR,
    IP,
    DaemonSet,
    DaemonSetName,
    Endpoint,
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
    Skipped,
    Slice,
    SliceEndpoint,
    SliceName,
    SlicePort,
    TrafficDistribution,
    TrafficPolicy,
    Zone,
)

N = TypeVar("N", NodeName, Zone)

NODES = [NodeName(name) for name in ("n1", "n2", "n3")]
ZONES = [Zone(name) for name in ("za", "zb", "zc")]
SERVICES = [ServiceName(name) for name in ("default/web", "default/dns", "other/web")]
PORT_NAMES = ["", "http", "dns"]
_IPS = {
    Family.IPV4: [IP(f"10.244.0.{last}") for last in range(1, 5)],
    Family.IPV6: [IP(f"fd00::{last}") for last in range(1, 5)],
}

node_names = st.sampled_from(NODES)
zone_names = st.sampled_from(ZONES)
families = st.sampled_from(Family)
protocols = st.sampled_from(Protocol)
distributions = st.sampled_from([None, *TrafficDistribution])
places = st.sampled_from([Place(node, zone) for node in (*NODES, NodeName("")) for zone in (*ZONES, None)])
same_nodes = st.sampled_from([SAME_NODE_OFF, SameNode(on=True, why=SameNodeWhy.COVERED)])
port_numbers = st.integers(min_value=1, max_value=65535)
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"], exclude_characters="/"), min_size=1)


def all_ips(family: Family) -> st.SearchStrategy[IP]:
    """Any canonical address of the family."""
    if family is Family.IPV4:
        return st.ip_addresses(v=4).map(lambda address: IP(str(address)))
    # ::ffff:10.0.0.1 is an IPv4 address in disguise
    ips = st.ip_addresses(v=6).map(lambda address: IP(str(address)))
    return ips.filter(lambda ip: ip == parse_ip(ip))


def cidrs() -> st.SearchStrategy[CIDR]:
    """Any canonical IPv4 network."""
    networks = st.builds("{}/{}".format, all_ips(Family.IPV4), st.integers(0, 32))
    return networks.map(lambda text: CIDR(str(parse_cidr(text))))


def _some_of(names: list[N], most: int = 2) -> list[frozenset[N]]:
    """Every set of at most `most` of the names, the empty one first."""
    return [frozenset(some) for size in range(most + 1) for some in itertools.combinations(names, size)]


# Every endpoint that choices can tell apart, drawn at one go, since drawing is what takes the time.
SHAPES = [
    SliceEndpoint(IP(""), ready, serving, terminating, node, zone, for_zones, for_nodes)
    for for_nodes in _some_of(NODES)
    for for_zones in _some_of(ZONES)
    for zone in (None, *ZONES)
    for node in (None, *NODES)
    for terminating in (False, True)
    for serving in (True, False)
    for ready in (True, False)
]
shapes = st.sampled_from(SHAPES)
target_pods = st.sampled_from([(None, ""), *((PodName(f"default/{name}"), "u") for name in ("a", "agent-abcde"))])


def _with_address(shape: SliceEndpoint, index: int) -> Endpoint:
    fields = {field: getattr(shape, field) for field in shape.__struct_fields__}
    return Endpoint(port=8080, **{**fields, "ip": IP(f"10.244.0.{index}")})


def endpoint_tuples() -> st.SearchStrategy[tuple[Endpoint, ...]]:
    """The endpoints of one Service port and family, as merging leaves them: no ip:port twice, sorted."""
    lists = st.lists(shapes, max_size=5)
    return lists.map(lambda some: tuple(_with_address(shape, index) for index, shape in enumerate(some, 1)))


@st.composite
def slice_endpoints(draw: st.DrawFn, family: Family = Family.IPV4) -> SliceEndpoint:
    """An endpoint within a slice, in any condition."""
    pod, pod_uid = draw(target_pods)
    ip = draw(st.sampled_from(_IPS[family]))
    return msgspec.structs.replace(draw(shapes), ip=ip, pod=pod, pod_uid=pod_uid)


slice_ports = st.builds(SlicePort, st.sampled_from(PORT_NAMES), protocols, st.sampled_from([8080, 8081]))


@st.composite
def slices(draw: st.DrawFn) -> Slice:
    """A slice; the names of slices are few, so that labels of live slices get edited (m19)."""
    family = draw(families)
    namespace = draw(st.sampled_from(["default", "other"]))
    return Slice(
        name=SliceName(f"{namespace}/{draw(st.sampled_from(['s1', 's2', 's3']))}"),
        service=ServiceName(f"{namespace}/{draw(st.sampled_from(['web', 'dns']))}"),
        family=family,
        ports=tuple(draw(st.lists(slice_ports, max_size=2))),
        endpoints=tuple(draw(st.lists(slice_endpoints(family), max_size=3))),
        triggered=draw(st.sampled_from(["", "2026-01-01T00:00:00Z"])),
    )


@st.composite
def service_ports(draw: st.DrawFn) -> tuple[ServicePort, ...]:
    """The ports of one Service: names and numbers unique, as the API demands."""
    names = draw(st.lists(st.sampled_from(PORT_NAMES), unique=True, max_size=3))
    return tuple(
        ServicePort(name, draw(protocols), 80 + index, draw(st.sampled_from([0, 30080 + index])))
        for index, name in enumerate(names)
    )


@st.composite
def services(draw: st.DrawFn) -> Service:
    """A Service of one or both families, with any policies."""
    service_type = draw(st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer"]))
    external_traffic_policy = draw(st.sampled_from(TrafficPolicy))
    checked = service_type == "LoadBalancer" and external_traffic_policy is TrafficPolicy.LOCAL
    cluster_ips = draw(st.permutations([draw(all_ips(Family.IPV4)), draw(all_ips(Family.IPV6))]))
    some_ips = st.lists(st.one_of(all_ips(Family.IPV4), all_ips(Family.IPV6)), max_size=2, unique=True)
    return Service(
        name=draw(st.sampled_from(SERVICES)),
        cluster_ips=tuple(cluster_ips[: draw(st.integers(1, 2))]),
        ports=draw(service_ports()),
        type=service_type,
        external_ips=tuple(draw(some_ips)),
        load_balancer_ips=(balanced := tuple(draw(some_ips))),
        source_ranges=tuple(draw(st.lists(cidrs(), max_size=2, unique=True))),
        internal_traffic_policy=draw(st.sampled_from(TrafficPolicy)),
        external_traffic_policy=external_traffic_policy,
        traffic_distribution=draw(distributions),
        affinity_timeout_s=draw(st.none() | st.integers(1, 86400)),
        health_check_node_port=draw(port_numbers) if checked else 0,
        selector=frozenset(draw(st.dictionaries(texts, texts, max_size=2)).items()),
        announce_on=draw(st.frozensets(node_names, max_size=2)),
        prefer_nodes=tuple(sorted(draw(st.dictionaries(node_names, st.integers(1, 100), max_size=2)).items())),
        created=draw(st.sampled_from(["", "2026-01-01T00:00:00Z"])),
        uid=draw(st.sampled_from(["", "a-b-c"])) if balanced else "",
    )


cluster_nodes = st.builds(
    Node,
    name=node_names,
    zone=st.none() | zone_names,
    addresses=st.lists(st.one_of(all_ips(Family.IPV4), all_ips(Family.IPV6)), max_size=3, unique=True).map(tuple),
    pod_cidrs=st.lists(cidrs(), max_size=2, unique=True).map(tuple),
    ready=st.booleans(),
    leaving=st.booleans(),
)
daemon_sets = st.builds(
    DaemonSet,
    name=st.sampled_from([DaemonSetName("default/agent"), DaemonSetName("other/agent")]),
    template_labels=st.dictionaries(texts, texts, max_size=2).map(lambda labels: frozenset(labels.items())),
    desired=st.none() | st.integers(0, 5000),
    max_unavailable=st.integers(0, 100).map(str) | st.integers(0, 100).map("{}%".format) | texts,
)
service_cidrs = st.builds(
    ServiceCIDR,
    name=st.sampled_from(["kubernetes", "more"]),
    cidrs=st.lists(cidrs(), min_size=1, max_size=2, unique=True).map(tuple),
)
pods = st.builds(
    Pod,
    name=st.sampled_from([PodName("default/agent-abcde"), PodName("default/web-1")]),
    uid=st.text("ab", max_size=2),
    daemon_set=st.sampled_from([None, DaemonSetName("default/agent")]),
)
objects: st.SearchStrategy[Object] = st.one_of(services(), slices(), cluster_nodes, daemon_sets, service_cidrs, pods)

_KINDS: dict[type[Object], Kind] = {
    Service: Kind.SERVICE,
    Slice: Kind.ENDPOINT_SLICE,
    Node: Kind.NODE,
    DaemonSet: Kind.DAEMON_SET,
    ServiceCIDR: Kind.SERVICE_CIDR,
    Pod: Kind.POD,
}


def kind_of(value: Object) -> Kind:
    """The API's word for a value."""
    return _KINDS[type(value)]


# Few versions of few objects: what becomes of a Snapshot depends on which are equal, not on what is in them.
_VERSIONS: list[Object] = [
    *(
        Service(name, (IP("10.96.0.10"),), (), type=service_type)
        for name in SERVICES
        for service_type in ("ClusterIP", "NodePort")
    ),
    *(
        Slice(SliceName(f"default/{name}"), ServiceName(f"default/{service}"), Family.IPV4, (), some, triggered)
        for name in ("s1", "s2", "s3")
        for service in ("web", "dns")
        for some in ((), (SliceEndpoint(IP("10.244.0.1")),))
        for triggered in ("", "2026-01-01T00:00:00Z")
    ),
    *(Node(name, zone) for name in NODES for zone in (None, ZONES[0])),
    *(DaemonSet(DaemonSetName("default/agent"), desired=desired) for desired in (None, 3)),
    *(ServiceCIDR("more", (CIDR(cidr),)) for cidr in ("10.96.0.0/12", "10.112.0.0/12")),
    *(Pod(PodName("default/agent-abcde"), uid) for uid in ("a", "b")),
]


def _versions_of(value: Object) -> list[Changed]:
    """An object as it is, broken in part, gone, or wholly broken."""
    kind = kind_of(value)
    skipped = (Skipped(f"{kind} {value.name}", "bad-object"),)
    return [Changed(kind, value.name, given, why) for given in (value, None) for why in ((), skipped)]


changes = st.sampled_from([changed for value in _VERSIONS for changed in _versions_of(value)])


def worlds() -> st.SearchStrategy[list[Changed]]:
    """The last word on each of some objects: no object twice."""
    return st.lists(changes, max_size=10, unique_by=lambda changed: (changed.kind, changed.name))


# Almost objects of the API: its words, but any values.
json_fields = st.sampled_from(
    ["kind", "apiVersion", "items", "metadata", "name", "labels", "spec", "clusterIP", "ports", "port", "endpoints"]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(json_fields, inner, max_size=4),
    max_leaves=8,
)
