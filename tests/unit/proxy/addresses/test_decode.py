import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.decode import DecodeError
from proxy.addresses.decode import AdvertisementObject, PoolObject, decode_line, decode_object, decode_page, read_lines
from proxy.addresses.types import Condition, DualStack, Kind, Namespace, Node, PoolStatus, Service
from tests.unit.proxy.addresses.builders import V4, V6

METADATA = {"name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "7", "creationTimestamp": "t"}
SERVICE: dict[str, Any] = {
    "metadata": {**METADATA, "labels": {"a": "b"}, "annotations": {"metallb.io/address-pool": "p", "other/x": "y"}},
    "spec": {
        "type": "LoadBalancer",
        "clusterIPs": ["10.96.0.7", "fd00::7"],
        "ipFamilyPolicy": "RequireDualStack",
        "ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}],
        "externalTrafficPolicy": "Local",
        "selector": {"tier": "front", "app": "web"},
        "loadBalancerClass": "closeby.dev/l2",
        "loadBalancerIP": "192.0.2.1",
    },
    "status": {
        "loadBalancer": {"ingress": [{"ip": "192.0.2.010"}, {"hostname": "x"}, {"ip": "bad"}]},
        "conditions": [
            {"type": "other", "status": "True"},
            {"type": "closeby.dev/AddressGranted", "status": "False", "reason": "NoPools", "message": "m"},
        ],
    },
}


def decode(kind: Kind, document: object) -> Any:  # noqa: ANN401  # the kind's own
    return decode_object(kind, json.dumps(document).encode()).object


def test_a_service_is_read_as_far_as_addresses_depend_on_it() -> None:
    change = decode_object(Kind.SERVICE, json.dumps(SERVICE).encode())

    assert (change.name, change.uid, change.version) == ("shop/web", "u1", "7")
    found = change.object
    assert isinstance(found, Service)
    assert (found.wants, found.load_balancer_class, found.load_balancer_ip) == (True, "closeby.dev/l2", "192.0.2.1")
    assert (found.families, found.dual_stack) == ((V4, V6), DualStack.REQUIRE)
    assert found.ports == {("TCP", 80), ("UDP", 53)}
    assert found.backends == "app=web,tier=front"
    assert found.held == ("192.0.2.10",)
    assert found.annotations == {"metallb.io/address-pool": "p"}
    assert found.granted == Condition("False", "NoPools", "m")


def test_a_cluster_ip_service_wants_nothing_and_cluster_policy_has_no_backends_to_agree_on() -> None:
    found = decode(Kind.SERVICE, {"metadata": METADATA, "spec": {"clusterIP": "None", "selector": {"a": "b"}}})

    assert (found.wants, found.families, found.backends, found.held) == (False, (), "", ())


def test_a_namespace_and_a_node() -> None:
    node = {"metadata": {"name": "n1"}, "status": {"addresses": [{"address": "192.0.2.1"}, {"address": "n1.local"}]}}

    assert decode(Kind.NAMESPACE, {"metadata": {"name": "shop", "labels": {"a": "b"}}}) == Namespace(
        "shop", frozenset({("a", "b")})
    )
    assert decode(Kind.NODE, node) == Node("n1", frozenset({"192.0.2.1"}))  # type: ignore[arg-type]  # an IP's text


def test_a_pools_status_is_read_back() -> None:
    status = {
        "assignedIPv4": 1,
        "availableIPv4": 2,
        "conditions": [{"type": "closeby.dev/Usable", "status": "True", "reason": "Valid"}],
    }
    found = decode(Kind.POOL, {"metadata": METADATA, "spec": {"addresses": ["192.0.2.0/31"]}, "status": status})

    assert isinstance(found, PoolObject)
    assert found.status == PoolStatus(1, 0, 2, 0)
    assert found.usable == Condition("True", "Valid")
    assert decode(Kind.POOL, {"metadata": METADATA}).status is None


@pytest.mark.parametrize("kind", [Kind.POOL, Kind.ADVERTISEMENT])
def test_what_has_a_field_of_another_type_is_there_and_says_so(kind: Kind) -> None:
    change = decode_object(kind, json.dumps({"metadata": METADATA, "spec": {"addresses": 3, "interfaces": 3}}).encode())

    assert "Expected" in change.problem
    assert change.name == "web"
    problems = change.object.read.problems if isinstance(change.object, PoolObject) else ()
    if isinstance(change.object, AdvertisementObject):
        problems = change.object.problems
    assert "Expected" in str(problems[0])


@pytest.mark.parametrize(
    ("asked", "spec", "spreads", "remark"),
    [
        ("true", {}, True, ""),
        ("false", {}, False, ""),
        ("yes", {}, False, "neither"),
        ("true", {"preferredNodeSelectors": [{"weight": 1, "preference": {}}]}, True, "prefer nodes"),
    ],
)
def test_an_advertisement_that_spreads_clients_stays_valid_whatever_word_it_uses(
    asked: str, spec: object, remark: str, *, spreads: bool
) -> None:
    metadata = {"name": "a", "annotations": {"closeby.dev/spread-clients": asked}}

    found = decode(Kind.ADVERTISEMENT, {"metadata": metadata, "spec": spec})

    assert isinstance(found, AdvertisementObject)
    assert found.advertisement is not None
    assert (found.advertisement.spreads, found.problems) == (spreads, ())
    assert [remark in str(one) for one in found.remarks] == ([True] if remark else [])


def test_a_service_that_can_not_be_read_is_no_deletion() -> None:
    change = decode_object(Kind.SERVICE, json.dumps({"metadata": METADATA, "spec": {"ports": 3}}).encode())

    assert (change.name, change.object) == ("shop/web", None)
    assert change.problem


def test_a_page_names_its_kind() -> None:
    page = {"kind": "ServiceList", "metadata": {"resourceVersion": "9"}, "items": [SERVICE]}

    listed = decode_page(Kind.SERVICE, json.dumps(page).encode())

    assert [change.name for change in listed.changes] == ["shop/web"]
    assert listed.resource_version == "9"
    with pytest.raises(DecodeError, match="a ServiceList, not a NamespaceList"):
        decode_page(Kind.NAMESPACE, json.dumps(page).encode())
    with pytest.raises(DecodeError):
        decode_page(Kind.NAMESPACE, b"[]")


def line(type_: str, document: object) -> bytes:
    return json.dumps({"type": type_, "object": document}).encode()


def test_lines_up_to_the_first_that_ends_the_stream() -> None:
    gone = {"kind": "Status", "code": 410, "message": "too old"}
    bookmark = {"metadata": {"resourceVersion": "11"}}
    lines = [line("ADDED", SERVICE), line("BOOKMARK", bookmark), line("DELETED", SERVICE), line("ERROR", gone)]

    changes, version, failure = read_lines(Kind.SERVICE, iter([*lines, line("ADDED", SERVICE)]))

    assert [change.object is None for change in changes] == [False, True]
    assert (version, failure) == ("7", (410, "too old"))
    assert read_lines(Kind.SERVICE, iter([b"{"])) == ([], "", (0, "a line that is no event"))


@given(st.binary(max_size=60), st.sampled_from(Kind))
def test_no_bytes_are_an_exception(body: bytes, kind: Kind) -> None:
    assert decode_object(kind, body).object is None or kind in Kind
    assert decode_line(kind, body) is None
