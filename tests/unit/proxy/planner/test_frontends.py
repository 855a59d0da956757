"""What a Service answers on, and who has an address that two claim."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import IP, Family, Protocol, Service, ServiceName, ServicePort
from proxy.planner.frontends import ClaimKey, Claims, Frontend, FrontendKind, port_frontends, service_claims
from tests.builders import HTTP, HTTP_NODE_PORT, service
from tests.small_worlds import contenders

V4, V6 = Family.IPV4, Family.IPV6
SHARED = IP("198.51.100.7")
KEY = ClaimKey(V4, SHARED, Protocol.TCP, 80)
OLD, YOUNG = "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"


def front(kind: FrontendKind, ip: str | None, port: int = 80, family: Family = V4) -> Frontend:
    return Frontend(kind, family, IP(ip) if ip else None, Protocol.TCP, port)


CLUSTER_IP = front(FrontendKind.CLUSTER_IP, "10.96.0.10")


@pytest.mark.parametrize(
    ("of", "port", "family", "frontends"),
    [
        pytest.param(service(), HTTP, V4, [CLUSTER_IP], id="a ClusterIP"),
        pytest.param(service(), HTTP, V6, [], id="nothing in a family that the Service lacks"),
        pytest.param(
            service(external_ips=(SHARED,), load_balancer_ips=(IP("203.0.113.9"),)),
            HTTP_NODE_PORT,
            V4,
            [
                CLUSTER_IP,
                front(FrontendKind.LOAD_BALANCER_IP, "203.0.113.9"),
                front(FrontendKind.EXTERNAL_IP, SHARED),
                front(FrontendKind.NODE_PORT, None, 30080),
            ],
            id="every kind, the ClusterIP first",
        ),
        pytest.param(
            service(external_ips=(SHARED, SHARED), load_balancer_ips=(SHARED,)),
            HTTP,
            V4,
            [CLUSTER_IP, front(FrontendKind.LOAD_BALANCER_IP, SHARED)],
            id="an address named three times counts once",
        ),
        pytest.param(
            service(external_ips=(IP("10.96.0.10"),)), HTTP, V4, [CLUSTER_IP], id="its own ClusterIP as external IP"
        ),
        pytest.param(
            service(cluster_ips=(IP("10.96.0.10"), IP("fd00::a")), external_ips=(IP("2001:db8::7"),)),
            HTTP_NODE_PORT,
            V6,
            [
                front(FrontendKind.CLUSTER_IP, "fd00::a", family=V6),
                front(FrontendKind.EXTERNAL_IP, "2001:db8::7", family=V6),
                front(FrontendKind.NODE_PORT, None, 30080, V6),
            ],
            id="of a dual-stack Service the addresses of the family",
        ),
    ],
)
def test_the_frontends_of_a_port(of: Service, port: ServicePort, family: Family, frontends: list[Frontend]) -> None:
    assert list(port_frontends(of, port, family)) == frontends


def claim_all(*some: Service) -> Claims:
    claims = Claims()
    for one in some:
        claims.replace(one.name, service_claims(one))
    return claims


A = service("default/a", external_ips=(SHARED,), created=YOUNG, cluster_ips=(IP("10.96.0.1"),))
B = service("default/b", external_ips=(SHARED,), created=OLD, cluster_ips=(IP("10.96.0.2"),))
AGELESS = service("default/0", external_ips=(SHARED,), created="", cluster_ips=(IP("10.96.0.3"),))
TWIN = service("default/c", external_ips=(SHARED,), created=OLD, cluster_ips=(IP("10.96.0.4"),))
OWNER = service("default/z", cluster_ips=(SHARED,), created="2026-01-01T00:00:00Z")
OTHER_PORT = service("default/d", external_ips=(SHARED,), ports=(ServicePort("x", Protocol.TCP, 81),), created=OLD)
OTHER_PROTOCOL = service("default/e", external_ips=(SHARED,), ports=(ServicePort("x", Protocol.UDP, 80),), created=OLD)


@pytest.mark.parametrize(
    ("rivals", "winner"),
    [
        pytest.param([A], "default/a", id="the only one"),
        pytest.param([A, B], "default/b", id="the older one"),
        pytest.param([B, TWIN], "default/b", id="of the same age, the first by name"),
        pytest.param([A, AGELESS], "default/a", id="one of unknown age comes last"),
        pytest.param([A, B, TWIN, OWNER], "default/z", id="a ClusterIP, however young, before others' external IPs"),
        pytest.param([A, OTHER_PORT, OTHER_PROTOCOL], "default/a", id="another port or protocol is no rival"),
    ],
)
def test_the_winner_is_the_same_in_any_order(rivals: list[Service], winner: str) -> None:
    for order in itertools.permutations(rivals):
        assert claim_all(*order).winner(KEY).service == winner


def test_a_key_changes_hands_when_its_winner_goes_and_the_others_are_named() -> None:
    claims = claim_all(A, B, TWIN)

    assert claims.replace(B.name, {}) == {"default/a", "default/c"}
    assert claims.winner(KEY).service == "default/c"
    assert claims.replace(TWIN.name, {}) == {"default/a"}
    assert claims.winner(KEY).service == "default/a"
    assert claims.replace(A.name, {}) == frozenset()
    assert claims.services == set()


def test_a_newcomer_names_those_it_may_take_from() -> None:
    claims = claim_all(A)

    assert claims.replace(B.name, service_claims(B)) == {"default/a"}
    assert claims.replace(OTHER_PORT.name, service_claims(OTHER_PORT)) == frozenset()


def test_between_two_ports_of_one_service_the_first_by_name_has_the_address() -> None:
    ports = (ServicePort("second", Protocol.TCP, 80), ServicePort("first", Protocol.TCP, 80))

    assert claim_all(service(ports=ports, external_ips=(SHARED,))).winner(KEY).port == "first"


@given(st.lists(contenders, max_size=8))
def test_what_is_left_after_any_changes_is_what_the_last_of_each_alone_would_leave(changes: list[Service]) -> None:
    last = {changed.name: changed for changed in changes}
    fresh = claim_all(*last.values())
    worn = claim_all(*changes)

    for one in last.values():
        for key in service_claims(one):
            assert worn.winner(key) == fresh.winner(key)
    for name in last:
        worn.replace(ServiceName(name), {})
    assert worn.services == set()
