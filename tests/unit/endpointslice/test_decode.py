import contextlib
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.decode import (
    Changed,
    DecodeError,
    WatchLine,
    convert_document,
    decode_continue,
    decode_list,
    decode_object,
    decode_watch_line,
)
from endpointslice.types import Kind, Skipped
from tests.builders import object_json, service, service_json
from tests.strategies import json_values

WEB = Changed(Kind.SERVICE, "default/web", service())
BAD_PORTS = [{"name": "http", "port": "80"}]
BAD_PORTS_DETAIL = "Expected `int | null`, got `str` - at `$.spec.ports[0].port`"
BAD_WEB = Changed(Kind.SERVICE, "default/web", None, (Skipped("Service default/web", "bad-object", BAD_PORTS_DETAIL),))


def list_body(*items: object, **metadata: object) -> bytes:
    return json.dumps({"kind": "ServiceList", "apiVersion": "v1", "metadata": metadata, "items": items}).encode()


def event_line(event: str, value: object) -> bytes:
    return json.dumps({"type": event, "object": value}).encode()


def test_a_page_has_its_objects_and_where_it_goes_on() -> None:
    page = decode_list(Kind.SERVICE, list_body(service_json(), resourceVersion="7", **{"continue": "next"}))

    assert page == ((WEB,), "7", "next")
    assert decode_continue(list_body(service_json(), **{"continue": "next"})) == "next"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"items": []}', id="empty"),
        pytest.param(b'{"items": null}', id="null, as Go writes an empty list"),
        pytest.param(b'{"kind": null, "metadata": {}, "items": []}', id="no kind"),
    ],
)
def test_an_empty_page(body: bytes) -> None:
    assert decode_list(Kind.SERVICE, body) == ((), "", "")
    assert decode_continue(body) == ""


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"<html>", id="not JSON"),
        pytest.param(b'{"items": [', id="cut off"),
        pytest.param(b'{"items": [{"spec": nul', id="cut off in an item"),
        pytest.param(b"[]", id="an array"),
        pytest.param(b'{"kind": "Status", "code": 403}', id="a Status"),
        pytest.param(b'{"kind": "PodList", "items": []}', id="a list of another kind"),
        pytest.param(b'{"kind": "ServiceList", "items": {}}', id="items that aren't a list"),
        pytest.param(b'{"kind": "ServiceList", "items": [], "metadata": 1}', id="metadata that isn't an object"),
    ],
)
def test_a_body_that_is_no_such_list_is_an_error(body: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_list(Kind.SERVICE, body)


def test_a_broken_item_costs_itself_and_nothing_else() -> None:
    other = service_json("other/web")

    page = decode_list(Kind.SERVICE, list_body(service_json(ports=BAD_PORTS), other, resourceVersion="7"))

    assert page.changes == (
        BAD_WEB,
        Changed(Kind.SERVICE, "other/web", msgspec.structs.replace(service(), name="other/web")),
    )
    assert page.resource_version == "7"


@pytest.mark.parametrize(
    ("item", "name", "detail"),
    [
        pytest.param(
            {"metadata": 1}, "items[0]", "Expected `object`, got `int` - at `$.metadata`", id="metadata of a wrong type"
        ),
        pytest.param({}, "items[0]", "Object missing required field `metadata`", id="no metadata"),
        pytest.param({"metadata": {}}, "items[0]", "metadata.name: none given", id="no name"),
        pytest.param(
            {"metadata": {"name": ""}, "spec": 1},
            "items[0]",
            "Expected `object`, got `int` - at `$.spec`",
            id="no name in a broken one",
        ),
        pytest.param(7, "items[0]", "Expected `object`, got `int`", id="not an object"),
    ],
)
def test_a_broken_item_without_a_name_goes_by_its_place(item: object, name: str, detail: str) -> None:
    page = decode_list(Kind.SERVICE, list_body(item))

    assert page.changes == (Changed(Kind.SERVICE, name, None, (Skipped(f"Service {name}", "bad-object", detail),)),)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_is_read_from_a_list_a_watch_and_a_document(kind: Kind) -> None:
    name = "x" if kind in {Kind.NODE, Kind.SERVICE_CIDR} else "default/x"
    value = {
        **object_json(kind, name, labels={"kubernetes.io/service-name": "web"}),
        "addressType": "IPv4",
        "spec": {"clusterIP": "10.96.0.10", "cidrs": ["10.96.0.0/12"]},
    }
    body = json.dumps({"kind": f"{kind}List", "items": [value]}).encode()

    (listed,) = decode_list(kind, body).changes
    watched = decode_watch_line(kind, event_line("ADDED", value))
    (converted,) = convert_document(value)

    assert listed.object is not None
    assert (listed.kind, listed.name, listed.object.name) == (kind, name, name)
    assert watched is not None
    assert listed == watched.change == converted == decode_object(kind, json.dumps(value).encode())


@pytest.mark.parametrize("event", ["ADDED", "MODIFIED"])
def test_an_event_brings_the_object_as_it_is_now(event: str) -> None:
    line = event_line(event, service_json() | {"metadata": {"name": "web", "resourceVersion": "9"}})

    assert WatchLine(event, WEB, "9") == decode_watch_line(Kind.SERVICE, line)


def test_a_broken_object_is_an_absent_one_and_the_watch_goes_on() -> None:
    value = service_json(ports=BAD_PORTS)
    value["metadata"] = {"name": "web", "resourceVersion": "9"}

    assert WatchLine("MODIFIED", BAD_WEB, "9") == decode_watch_line(Kind.SERVICE, event_line("MODIFIED", value))


def test_even_a_broken_object_can_be_deleted() -> None:
    line = event_line("DELETED", service_json(ports=BAD_PORTS))

    assert WatchLine("DELETED", Changed(Kind.SERVICE, "default/web", None), "") == decode_watch_line(Kind.SERVICE, line)


def test_an_object_with_unreadable_metadata_goes_by_a_word() -> None:
    read = decode_watch_line(Kind.SERVICE, event_line("ADDED", {"metadata": {"name": 1}}))

    assert read is not None
    assert read.change is not None
    assert (read.change.name, read.change.object, read.resource_version) == ("(unnamed)", None, "")


def test_a_bookmark_brings_a_version_alone() -> None:
    line = event_line("BOOKMARK", {"kind": "Service", "metadata": {"resourceVersion": "12"}})

    assert WatchLine("BOOKMARK", None, "12") == decode_watch_line(Kind.SERVICE, line)


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        pytest.param({"kind": "Status", "code": 410, "message": "too old"}, 410, "too old", id="410 Gone"),
        pytest.param({"kind": "Status"}, 0, "", id="a bare Status"),
        pytest.param({"code": "x"}, 0, "Expected `int | null`, got `str` - at `$.code`", id="not a Status"),
    ],
)
def test_an_error_brings_its_status(status: object, code: int, message: str) -> None:
    read = decode_watch_line(Kind.SERVICE, event_line("ERROR", status))

    assert WatchLine("ERROR", None, "", code, message) == read


@given(st.integers(min_value=0))
def test_a_cut_line_is_no_event(length: int) -> None:
    line = event_line("ADDED", service_json())

    assert decode_watch_line(Kind.SERVICE, line[: length % len(line)]) is None


@pytest.mark.parametrize("line", [b"", b"\n", b"{}", b"[]", b'{"type": 1, "object": {}}', b"\xff"])
def test_what_has_no_type_and_object_is_no_event(line: bytes) -> None:
    assert decode_watch_line(Kind.SERVICE, line) is None


def test_an_object_that_is_not_json_is_a_broken_one() -> None:
    read = decode_object(Kind.POD, b"<html>")

    assert (read.name, read.object) == ("(unnamed)", None)
    assert [skipped.reason for skipped in read.skipped] == ["bad-object"]


@given(kind=st.sampled_from(Kind), items=st.lists(json_values, max_size=3))
def test_any_list_gives_an_answer_for_each_item(kind: Kind, items: list[object]) -> None:
    page = decode_list(kind, json.dumps({"items": items}).encode())

    assert len(items) == len(page.changes)
    assert all(changed.object is not None or changed.skipped for changed in page.changes)


@given(
    kind=st.sampled_from(Kind), body=st.binary(max_size=20) | json_values.map(lambda value: json.dumps(value).encode())
)
def test_any_bytes_are_a_list_or_a_decode_error(kind: Kind, body: bytes) -> None:
    with contextlib.suppress(DecodeError):
        assert all(changed.kind is kind for changed in decode_list(kind, body).changes)


def test_the_name_of_a_service_is_one_value_in_memory() -> None:
    first, second = (decode_list(Kind.SERVICE, list_body(service_json())).changes[0] for _page in range(2))

    assert first.name is second.name
