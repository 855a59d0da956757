"""Which Services have a health-check port, and what is counted for it."""

import msgspec
import pytest

from endpointslice.snapshot import EMPTY, Changed, Snapshot, apply_events
from endpointslice.types import IP, Family, Kind, NodeName, Service, ServiceName, SliceEndpoint, TrafficPolicy
from proxy.healthcheck.checks import Check, Checks, count_ready, wants_check
from tests.builders import a_slice, service, slice_endpoint
from tests.strategies import kind_of

NODE = NodeName("n1")
DUAL = (IP("10.96.0.10"), IP("fd00:96::10"))


def balanced(name: str = "default/web", /, port: int = 31000, **fields: object) -> Service:
    wanted = {"type": "LoadBalancer", "external_traffic_policy": TrafficPolicy.LOCAL, "health_check_node_port": port}
    return service(name, **{**wanted, **fields})


def here(ip: str, conditions: str = "R") -> SliceEndpoint:
    return slice_endpoint(ip, conditions, node=NODE)


def there(ip: str) -> SliceEndpoint:
    return slice_endpoint(ip, node=NodeName("n2"))


def snapshot_of(*objects: Service) -> Snapshot:
    return apply_events(EMPTY, [Changed(kind_of(one), one.name, one) for one in objects])[0]


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        pytest.param({}, True, id="a LoadBalancer with the Local policy and a port"),
        pytest.param({"type": "NodePort"}, False, id="a NodePort Service"),
        pytest.param({"external_traffic_policy": TrafficPolicy.CLUSTER}, False, id="the Cluster policy"),
        pytest.param({"health_check_node_port": 0}, False, id="no port"),
    ],
)
def test_which_services_have_a_port(*, fields: dict[str, object], wanted: bool) -> None:
    assert wants_check(msgspec.structs.replace(balanced(), **fields)) is wanted


@pytest.mark.parametrize(
    ("endpoints", "ready"),
    [
        pytest.param([], 0, id="none"),
        pytest.param([here("10.244.1.1"), here("10.244.1.2"), there("10.244.2.1")], 2, id="only this node's count"),
        pytest.param([slice_endpoint("10.244.1.1")], 0, id="one without a node is nowhere"),
        pytest.param([here("10.244.1.1", "T")], 0, id="one that drains doesn't count, though it serves"),
        pytest.param([here("10.244.1.1", "X"), here("10.244.1.2", "N")], 0, id="nor one that isn't ready"),
        pytest.param([here("10.244.1.1", "P")], 1, id="publishNotReadyAddresses makes it ready"),
        pytest.param([here("10.244.1.1", "T"), here("10.244.1.1")], 1, id="an address that was given to another pod"),
    ],
)
def test_what_counts(endpoints: list[SliceEndpoint], ready: int) -> None:
    assert count_ready(balanced(), [a_slice(endpoints)], NODE) == ready


def test_an_address_counts_once_over_all_ports_and_slices() -> None:
    slices = [a_slice([here("10.244.1.1")], name) for name in ("default/web-1", "default/web-2")]

    assert count_ready(balanced(), slices, NODE) == 1


def test_a_dual_stack_pod_counts_once() -> None:
    slices = [
        a_slice([here("10.244.1.1"), here("10.244.1.2")]),
        a_slice([here("fd00::1")], "default/web-6", family=Family.IPV6),
    ]

    assert count_ready(balanced(cluster_ips=DUAL), slices, NODE) == 2
    assert count_ready(balanced(cluster_ips=DUAL[1:]), slices, NODE) == 1


def test_commits_add_change_and_take_away() -> None:
    checks = Checks(NODE)
    web = balanced()
    before = snapshot_of(web, balanced("default/other", 31001))
    assert checks.update(before, None)
    assert not checks.update(before, None)
    assert checks.by_port() == {31000: Check(web.name, 31000, 0), 31001: Check(ServiceName("default/other"), 31001, 0)}

    changes = [
        Changed(Kind.ENDPOINT_SLICE, "default/web-1", a_slice([here("10.244.1.1")])),
        Changed(Kind.SERVICE, web.name, msgspec.structs.replace(web, health_check_node_port=32000)),
        Changed(Kind.SERVICE, "default/other", None),
    ]
    after, touched = apply_events(before, changes)
    assert checks.update(after, touched)

    assert checks.by_port() == {32000: Check(web.name, 32000, 1)}
    assert checks.update(EMPTY, None)
    assert checks.by_port() == {}


def test_of_two_services_with_one_port_the_first_by_name_has_it() -> None:
    checks = Checks(NODE)

    checks.update(snapshot_of(balanced("default/b"), balanced("default/a")), None)

    assert checks.by_port() == {31000: Check(ServiceName("default/a"), 31000, 0)}
