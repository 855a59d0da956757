"""Status objects as the API has them: what is written is read again, in both kinds; others are left alone."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import IP, NodeName, ServiceName
from proxy.l2status.types import Address, Entry, Stored, Stranger
from proxy.l2status.wire import (
    OWN,
    Dialect,
    decode_page,
    list_path,
    metallb,
    narrow,
    object_name,
    object_path,
    render_object,
    select_node,
    select_services,
)

WEB, N1 = ServiceName("shop/web"), NodeName("n1")
ENTRY = Entry(
    WEB,
    N1,
    (Address(IP("192.0.2.1"), "eth0"), Address(IP("2001:db8::1"), "eth1")),
    (Stranger(IP("192.0.2.1"), "eth0", "02:00:00:00:00:99"),),
)
TWIN = metallb("metallb-system")
ips = st.sampled_from([IP("192.0.2.1"), IP("2001:db8::1")])
links = st.sampled_from(["eth0", "bond0.12"])
entries = st.builds(
    Entry,
    st.sampled_from([WEB, ServiceName("a/b")]),
    st.sampled_from([N1, NodeName("n2.example.org")]),
    st.lists(st.builds(Address, ips, links), max_size=3).map(tuple),
    st.lists(st.builds(Stranger, ips, links, st.just("02:00:00:00:00:99")), max_size=2).map(tuple),
)


def page(*objects: dict[str, Any], following: str = "") -> bytes:
    for number, one in enumerate(objects):
        one["metadata"]["resourceVersion"] = str(number)
    return json.dumps({"metadata": {"continue": following}, "items": objects}).encode()


@given(entries, st.sampled_from([OWN, TWIN]))
def test_what_is_written_is_read_again(entry: Entry, dialect: Dialect) -> None:
    wish = narrow(dialect, entry)
    if wish is None:
        assert not entry.addresses
        return

    assert decode_page(dialect, page(render_object(dialect, wish, "u"))).stored == (Stored(wish, "0"),)


def test_our_own_object_stands_beside_its_service_and_goes_with_it() -> None:
    found = render_object(OWN, ENTRY, "uid-1", "12")

    assert found["apiVersion"] == "closeby.dev/v1beta1"
    assert found["metadata"] == {
        "name": object_name(WEB, N1),
        "namespace": "shop",
        "labels": {
            "closeby.dev/node": "n1",
            "closeby.dev/service-name": "web",
            "closeby.dev/service-namespace": "shop",
        },
        "resourceVersion": "12",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": "web", "uid": "uid-1"}],
    }
    assert found["status"]["interfaces"] == [{"name": "eth0"}, {"name": "eth1"}]
    assert found["status"]["conflicts"] == [{"ip": "192.0.2.1", "interface": "eth0", "mac": "02:00:00:00:00:99"}]


def test_the_twin_has_metallbs_fields_and_labels_and_no_owner_in_another_namespace() -> None:
    wish = narrow(TWIN, ENTRY)
    assert wish is not None
    found = render_object(TWIN, wish, "uid-1")

    assert found["apiVersion"] == "metallb.io/v1beta1"
    assert found["metadata"]["namespace"] == "metallb-system"
    assert set(found["metadata"]["labels"]) == {
        "metallb.io/node",
        "metallb.io/service-name",
        "metallb.io/service-namespace",
    }
    assert "ownerReferences" not in found["metadata"]
    assert set(found["status"]) == {"node", "serviceName", "serviceNamespace", "interfaces"}


def test_of_a_conflict_alone_metallbs_kind_knows_nothing() -> None:
    assert narrow(TWIN, Entry(WEB, N1, (), ENTRY.conflicts)) is None
    assert narrow(OWN, Entry(WEB, N1, (), ENTRY.conflicts)) is not None


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(
            {"metadata": {"name": "l2-x7k2p"}, "status": {"node": "n1", "serviceName": "web"}}, id="MetalLB's"
        ),
        pytest.param({"metadata": {"name": object_name(WEB, N1)}}, id="without a status"),
        pytest.param({"metadata": {"name": object_name(WEB, N1)}, "status": None}, id="with a status of null"),
    ],
)
def test_objects_that_are_not_ours_are_left_alone(other: dict[str, Any]) -> None:
    assert decode_page(TWIN, page(other)).stored == ()


def test_a_list_in_parts_says_where_it_goes_on() -> None:
    assert decode_page(OWN, page(following="abc")).following == "abc"


def test_paths_and_selectors() -> None:
    long = NodeName("a" * 62 + ".example.org")

    assert list_path(OWN) == "/apis/closeby.dev/v1beta1/servicel2statuses"
    assert list_path(TWIN) == "/apis/metallb.io/v1beta1/namespaces/metallb-system/servicel2statuses"
    assert object_path(OWN, ENTRY).startswith("/apis/closeby.dev/v1beta1/namespaces/shop/servicel2statuses/l2-")
    assert object_path(TWIN, ENTRY).startswith(f"{list_path(TWIN)}/l2-")
    assert select_node(OWN, long) == f"closeby.dev/node={'a' * 62}"
    assert select_services(TWIN, [WEB, ServiceName("x/web"), ServiceName("x/b")]) == (
        "metallb.io/service-name in (b,web)"
    )
