"""Parsed manifests."""

import datetime as dt
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.decode import Changed, convert_document, decode_list
from endpointslice.types import Kind, Node, NodeName, Skipped, Slice
from tests.builders import Json, a_slice, object_json, service, service_json, slice_endpoint, slice_json
from tests.strategies import json_fields, json_values

WEB = Changed(Kind.SERVICE, "default/web", service())
WEB_SLICE = Changed(Kind.ENDPOINT_SLICE, "default/web-1", a_slice([slice_endpoint()]))
BAD_PORTS = [{"name": "http", "port": "80"}]
BAD_PORTS_DETAIL = "Expected `int | null`, got `str` - at `$.spec.ports[0].port`"
BAD_WEB = Changed(Kind.SERVICE, "default/web", None, (Skipped("Service default/web", "bad-object", BAD_PORTS_DETAIL),))


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(None, id="an empty document"),
        pytest.param("text", id="text"),
        pytest.param(["list"], id="a list"),
        pytest.param({}, id="an empty object"),
        pytest.param({"kind": 7}, id="a kind that isn't text"),
        pytest.param({"kind": ["Service"]}, id="a kind that is a list"),
        pytest.param({"kind": "ConfigMap", "metadata": {"name": "x"}}, id="a kind that isn't read"),
        pytest.param({"kind": "List"}, id="a List without items"),
        pytest.param({"kind": "List", "items": {"kind": "Service"}}, id="a List whose items aren't a list"),
        pytest.param({**service_json(), "apiVersion": "serving.knative.dev/v1"}, id="another group's Service"),
        pytest.param({**slice_json(), "apiVersion": "v1"}, id="an EndpointSlice of the core group"),
        pytest.param({1: object()}, id="what no YAML holds"),
    ],
)
def test_a_document_of_nothing_that_is_read_gives_nothing(document: object) -> None:
    assert convert_document(document) == ()


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(service_json(), id="no apiVersion"),
        pytest.param({**service_json(), "apiVersion": "v1"}, id="apiVersion v1"),
        pytest.param({**service_json(), "metadata": {"name": "web"}}, id="no namespace is default"),
        pytest.param({"kind": "List", "items": [service_json()]}, id="kubectl's List"),
        pytest.param({"kind": "ServiceList", "items": [{**service_json(), "kind": "Service"}]}, id="a typed list"),
        pytest.param({"kind": "List", "items": [None, {"kind": "List", "items": [service_json()]}]}, id="nested Lists"),
    ],
)
def test_documents_that_hold_one_service(document: object) -> None:
    assert convert_document(document) == (WEB,)


def test_items_of_a_typed_list_need_no_kind() -> None:
    bare = service_json()
    del bare["kind"]

    assert convert_document({"kind": "ServiceList", "items": [bare]}) == (WEB,)


def test_a_list_of_many_kinds_gives_each_in_order() -> None:
    node = object_json(Kind.NODE, "n1")

    changes = convert_document({"kind": "List", "items": [service_json(), node, slice_json()]})

    assert changes == (WEB, Changed(Kind.NODE, "n1", Node(NodeName("n1"))), WEB_SLICE)


def test_a_broken_document_names_its_field() -> None:
    assert convert_document(service_json(ports=BAD_PORTS)) == (BAD_WEB,)


@pytest.mark.parametrize(
    ("document", "detail"),
    [
        pytest.param(
            {"kind": "Service", "metadata": "x"}, "Expected `object`, got `str` - at `$.metadata`", id="bad metadata"
        ),
        pytest.param({"kind": "Service"}, "Object missing required field `metadata`", id="no metadata"),
        pytest.param({"kind": "Service", "metadata": {}}, "metadata.name: none given", id="no name"),
    ],
)
def test_a_broken_document_without_a_name(document: object, detail: str) -> None:
    skipped = Skipped("Service (unnamed)", "bad-object", detail)

    assert (Changed(Kind.SERVICE, "(unnamed)", None, (skipped,)),) == convert_document(document)


def test_a_document_of_a_kind_that_holds_the_unconvertible_is_broken() -> None:
    (changed,) = convert_document({"kind": "Service", "metadata": {"name": object()}})

    assert (changed.kind, changed.object) == (Kind.SERVICE, None)


def test_a_document_that_contains_itself_is_broken_and_no_more() -> None:
    loop: Json = {"kind": "Service"}
    loop["spec"] = loop
    lists: Json = {"kind": "List"}
    lists["items"] = [lists]

    assert [changed.object for changed in convert_document(loop)] == [None]
    assert convert_document(lists) == ()


def test_deeply_nested_lists_give_nothing_and_no_error() -> None:
    document: object = service_json()
    for _level in range(100_000):
        document = {"kind": "List", "items": [document]}

    assert convert_document(document) == ()


def test_a_date_that_yaml_has_read_is_text_again() -> None:
    document = service_json()
    document["metadata"] = {"name": "web", "creationTimestamp": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)}

    (changed,) = convert_document(document)

    assert changed.object == service(created="2026-01-01T00:00:00Z")


def test_a_manifests_slice_port_without_a_name_is_the_unnamed_one() -> None:
    document = slice_json(ports=[{"port": 8080}])

    (from_folder,) = convert_document(document)
    (from_api,) = decode_list(
        Kind.ENDPOINT_SLICE, json.dumps({"kind": "EndpointSliceList", "items": [document]}).encode()
    ).changes

    assert isinstance(from_folder.object, Slice)
    assert [port.name for port in from_folder.object.ports] == [""]
    assert [skipped.reason for skipped in from_api.skipped] == ["no-port-name"]


@given(kind=st.sampled_from([*Kind, "List", "ServiceList"]), fields=st.dictionaries(json_fields, json_values))
def test_any_document_gives_objects_or_reasons(kind: str, fields: dict[str, object]) -> None:
    for changed in convert_document({**fields, "kind": str(kind)}):
        assert changed.object is not None or changed.skipped
