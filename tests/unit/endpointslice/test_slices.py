import msgspec
import pytest

from endpointslice import api
from endpointslice.reasons import Converted
from endpointslice.slices import convert_slice, with_api_defaults
from endpointslice.types import Family, PodName, Protocol, Skipped, Slice, SliceEndpoint, SlicePort
from tests.builders import a_slice, nodes, slice_endpoint, slice_json, zones

LABEL = "EndpointSlice default/web-1"


def convert(wire: object) -> Converted:
    return convert_slice(msgspec.convert(wire, api.EndpointSlice), "default/web-1")


def convert_usable(**fields: object) -> tuple[Slice, tuple[Skipped, ...]]:
    converted = convert(slice_json(**fields))
    assert isinstance(converted.object, Slice)
    return converted.object, converted.skipped


def convert_endpoint(**fields: object) -> SliceEndpoint:
    converted, skipped = convert_usable(endpoints=[{"addresses": ["10.244.0.1"], **fields}])
    assert skipped == ()
    return converted.endpoints[0]


def test_an_ordinary_slice_has_the_fields_that_are_read() -> None:
    assert (a_slice([slice_endpoint()]), ()) == convert_usable()


@pytest.mark.parametrize(
    ("fields", "reason", "detail"),
    [
        pytest.param({"addressType": "FQDN"}, "fqdn", "addressType: 'FQDN'", id="m1 FQDN"),
        pytest.param({"addressType": "IPX"}, "unknown-address-type", "addressType: 'IPX'", id="m1 unknown type"),
        pytest.param({"addressType": None}, "unknown-address-type", "addressType: None", id="m1 no type"),
        pytest.param({"labels": None}, "no-service-name", "", id="m2 no labels"),
        pytest.param({"labels": {"a": "b"}}, "no-service-name", "", id="m2 no service-name label"),
        pytest.param({"labels": {"kubernetes.io/service-name": ""}}, "no-service-name", "", id="m2 empty service-name"),
        pytest.param(
            {"labels": {"kubernetes.io/service-name": "web", "service.kubernetes.io/headless": ""}},
            "headless-label",
            "",
            id="headless label",
        ),
    ],
)
def test_a_slice_that_is_no_services_is_skipped(fields: dict[str, object], reason: str, detail: str) -> None:
    assert Converted(None, (Skipped(LABEL, reason, detail),)) == convert(slice_json(**fields))


def test_the_label_of_another_proxys_service_hides_no_slice() -> None:
    labels = {"kubernetes.io/service-name": "web", "service.kubernetes.io/service-proxy-name": "x"}

    assert convert(slice_json(labels=labels)).object is not None


def test_an_ipv6_slice_has_ipv6_endpoints() -> None:
    converted, skipped = convert_usable(addressType="IPv6", endpoints=[{"addresses": ["FD00::0001"]}])

    assert converted == a_slice([slice_endpoint("fd00::1")], family=Family.IPV6)
    assert skipped == ()


@pytest.mark.parametrize("ports", [None, []])
def test_a_slice_without_ports_keeps_its_endpoints_but_says_so(ports: object) -> None:
    converted, skipped = convert_usable(ports=ports)

    assert converted == a_slice([slice_endpoint()], ports=())
    assert skipped == (Skipped(LABEL, "all-ports", f"ports: {ports!r}"),)


@pytest.mark.parametrize("nothing", [None, []])
def test_the_placeholder_of_a_service_without_pods_is_nothing_to_report(nothing: object) -> None:
    assert (a_slice(ports=()), ()) == convert_usable(ports=nothing, endpoints=nothing)


@pytest.mark.parametrize(
    ("port", "expected"),
    [
        pytest.param({"name": "", "port": 53, "protocol": "UDP"}, SlicePort("", Protocol.UDP, 53), id="m5 unnamed"),
        pytest.param({"name": "http", "port": 81}, SlicePort("http", Protocol.TCP, 81), id="m6 protocol nil is TCP"),
        pytest.param({"port": 53}, "no-port-name", id="m5 name nil"),
        pytest.param({"name": "x"}, "no-port-number", id="m6 number nil"),
        pytest.param({"name": "x", "port": 0}, "no-port-number", id="m6 number zero"),
        pytest.param({"name": "x", "port": 65536}, "bad-port", id="number too large"),
        pytest.param({"name": "x", "port": -1}, "bad-port", id="negative number"),
        pytest.param({"name": "x", "port": 53, "protocol": "ICMP"}, "unknown-protocol", id="unknown protocol"),
    ],
)
def test_ports(port: dict[str, object], expected: SlicePort | str) -> None:
    converted, skipped = convert_usable(ports=[port])

    if isinstance(expected, SlicePort):
        assert (converted.ports, skipped) == ((expected,), ())
    else:
        detail = f"ports[0]: {(port.get('name'), port.get('protocol'), port.get('port'))!r}"
        assert (converted.ports, skipped) == ((), (Skipped(f"{LABEL} port 0", expected, detail),))


def test_one_name_may_have_two_numbers() -> None:
    converted, _skipped = convert_usable(ports=[{"name": "http", "port": 80}, {"name": "http", "port": 81}])

    assert [port.port for port in converted.ports] == [80, 81]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param(None, (True, True, False), id="m9-m11 no conditions"),
        pytest.param({}, (True, True, False), id="m9-m11 empty conditions"),
        pytest.param({"ready": None, "serving": None, "terminating": None}, (True, True, False), id="m9-m11 all nil"),
        pytest.param({"ready": False}, (False, True, False), id="m10 serving nil is true"),
        pytest.param({"serving": False}, (True, False, False), id="m9 ready nil is true"),
        pytest.param({"terminating": True}, (True, True, True), id="terminating and ready (m14)"),
        pytest.param(
            {"ready": False, "serving": False, "terminating": True}, (False, False, True), id="m15 terminating"
        ),
    ],
)
def test_conditions(conditions: object, expected: tuple[bool, bool, bool]) -> None:
    endpoint = convert_endpoint(conditions=conditions)

    assert expected == (endpoint.ready, endpoint.serving, endpoint.terminating)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"nodeName": "n1"}, {"node": "n1"}, id="node"),
        pytest.param({"nodeName": ""}, {}, id="empty node is none"),
        pytest.param({"zone": "za"}, {"zone": "za"}, id="zone"),
        pytest.param({"zone": ""}, {}, id="empty zone is none"),
        pytest.param({"hints": {}}, {}, id="m16 empty hints"),
        pytest.param({"hints": {"forZones": []}}, {}, id="m16 empty list of zones"),
        pytest.param({"hints": {"forZones": [{"name": ""}]}}, {}, id="empty zone name is no hint"),
        pytest.param(
            {"hints": {"forZones": [{"name": "za"}, {"name": "zb"}]}}, {"for_zones": zones("za", "zb")}, id="m16 zones"
        ),
        pytest.param(
            {"hints": {"forNodes": [{"name": "n1"}], "forZones": None}}, {"for_nodes": nodes("n1")}, id="m16 nodes"
        ),
        pytest.param({"targetRef": None}, {}, id="no target"),
        pytest.param({"targetRef": {"kind": "VM", "name": "x"}}, {}, id="a target that isn't a Pod"),
        pytest.param({"targetRef": {"kind": "Pod"}}, {}, id="a target without a name"),
        pytest.param(
            {"targetRef": {"kind": "Pod", "name": "web-1", "namespace": "other", "uid": "u"}},
            {"pod": PodName("other/web-1"), "pod_uid": "u"},
            id="a Pod",
        ),
        pytest.param(
            {"targetRef": {"kind": "Pod", "name": "web-1"}}, {"pod": PodName("default/web-1")}, id="a Pod's bare name"
        ),
        pytest.param({"addresses": ["010.244.00.1", "10.244.0.2"]}, {}, id="m8 only the first address counts"),
        pytest.param({"addresses": ["::ffff:10.244.0.1"]}, {}, id="IPv4-mapped is IPv4"),
    ],
)
def test_endpoint_fields(fields: dict[str, object], expected: dict[str, object]) -> None:
    assert convert_endpoint(**fields) == slice_endpoint(**expected)


@pytest.mark.parametrize(
    ("addresses", "reason", "field"),
    [
        pytest.param(None, "no-address", "endpoints[1].addresses: None", id="m8 addresses nil"),
        pytest.param([], "no-address", "endpoints[1].addresses: []", id="m8 addresses empty"),
        pytest.param(["10.0.0.300"], "bad-address", "endpoints[1].addresses[0]: '10.0.0.300'", id="not an address"),
        pytest.param(["fd00::1"], "other-family", "endpoints[1].addresses[0]: 'fd00::1'", id="another family's"),
    ],
)
def test_an_unusable_endpoint_is_left_out_and_named(addresses: object, reason: str, field: str) -> None:
    converted, skipped = convert_usable(endpoints=[{"addresses": ["10.244.0.1"]}, {"addresses": addresses}])

    assert converted == a_slice([slice_endpoint()])
    assert skipped == (Skipped(LABEL, reason, field),)


def test_the_trigger_time_is_kept_as_sent() -> None:
    key = "endpoints.kubernetes.io/last-change-trigger-time"

    assert convert(slice_json(annotations={key: "2026-01-01T00:00:00Z", "a": "b"})).object == a_slice(
        [slice_endpoint()], triggered="2026-01-01T00:00:00Z"
    )
    assert convert(slice_json(annotations={"a": "b"})).object == a_slice([slice_endpoint()])


def test_equal_hints_and_ports_are_one_value_in_memory() -> None:
    endpoints = [{"addresses": [f"10.244.0.{last}"], "hints": {"forZones": [{"name": "za"}]}} for last in (1, 2)]

    first, _skipped = convert_usable(endpoints=endpoints)
    second, _skipped = convert_usable(endpoints=endpoints)

    assert first.ports is second.ports
    assert len({id(each.for_zones) for converted in (first, second) for each in converted.endpoints}) == 1


@pytest.mark.parametrize(
    ("ports", "names"),
    [
        pytest.param(None, None, id="no ports stay none"),
        pytest.param([{"name": "http", "port": 80}], ["http"], id="a name stays"),
        pytest.param([{"port": 80}, {"name": "dns", "port": 53}], ["", "dns"], id="a missing name is empty"),
    ],
)
def test_api_defaults_name_what_has_no_name(ports: object, names: list[str] | None) -> None:
    wire = with_api_defaults(msgspec.convert(slice_json(ports=ports), api.EndpointSlice))

    assert names == (None if wire.ports is None else [port.name for port in wire.ports])
