import json

import pytest
from structlog.testing import capture_logs

from endpointslice.decode import DecodeError
from proxy.addresses.follow import ChangeSink, list_resources
from proxy.addresses.messages import Heard
from proxy.addresses.types import Kind

OBJECT = {"metadata": {"name": "shop", "resourceVersion": "7"}}


def page(*items: object, version: str = "9") -> bytes:
    return json.dumps({"kind": "NamespaceList", "metadata": {"resourceVersion": version}, "items": items}).encode()


def line(type_: str, document: object) -> bytes:
    return json.dumps({"type": type_, "object": document}).encode()


@pytest.fixture
def heard() -> list[Heard]:
    return []


@pytest.fixture
def sink(heard: list[Heard]) -> ChangeSink:
    return ChangeSink(Kind.NAMESPACE, 3, heard.append)


def test_there_is_a_resource_for_each_kind_and_no_doing_without_pools() -> None:
    resources = {Kind(one.kind): one for one in list_resources("ns")}

    assert resources.keys() == set(Kind)
    assert resources[Kind.POOL].path == "/apis/metallb.io/v1beta1/namespaces/ns/ipaddresspools"
    assert [kind for kind, one in resources.items() if one.permission] == [
        Kind.NODE,
        Kind.ADVERTISEMENT,
        Kind.L2_STATUS,
    ]


def test_pages_are_one_list(sink: ChangeSink, heard: list[Heard]) -> None:
    taken = sink.take_pages(iter([page(OBJECT), page({"metadata": {"name": "bank"}}, version="10")]))

    assert (taken.resource_version, taken.objects) == ("10", 2)
    ((term, kind, changes, listed),) = heard
    assert (term, kind, listed) == (3, Kind.NAMESPACE, True)
    assert [change.name for change in changes] == ["shop", "bank"]


def test_a_list_that_breaks_off_is_none(sink: ChangeSink, heard: list[Heard]) -> None:
    with pytest.raises(DecodeError):
        sink.take_pages(iter([page(OBJECT), b"{"]))

    assert heard == []


def test_what_we_may_not_read_is_a_list_of_nothing(sink: ChangeSink, heard: list[Heard]) -> None:
    sink.take_nothing()

    assert heard == [Heard(3, Kind.NAMESPACE, (), listed=True)]


def test_lines_are_changes_up_to_a_failure(sink: ChangeSink, heard: list[Heard]) -> None:
    gone = {"kind": "Status", "code": 410, "message": "too old"}

    taken = sink.take_lines([line("ADDED", OBJECT), line("ERROR", gone)])

    assert (taken.resource_version, taken.failure) == ("7", (410, "too old"))
    assert [change.name for change in heard[0].changes] == ["shop"]
    assert not heard[0].listed
    assert sink.take_lines([line("BOOKMARK", OBJECT)]) == ("7", 0, None)
    assert len(heard) == 1


def test_an_object_that_can_not_be_read_is_told() -> None:
    sink = ChangeSink(Kind.POOL, 1, lambda _: None)

    with capture_logs() as logs:
        sink.take_lines([line("ADDED", {"metadata": {"name": "p"}, "spec": 3})])

    assert [(one["event"], one["object"]) for one in logs] == [("object_unreadable", "p")]
