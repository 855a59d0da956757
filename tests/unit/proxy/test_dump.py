"""Dumps: what was decided on is read back, and decided the same."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from endpointslice.daemonsets import Mode
from endpointslice.snapshot import EMPTY, Changed, apply_events
from endpointslice.types import CIDR, Kind, NodeName, Skipped
from proxy.dump import add_skipped, read_settings, render_dump
from proxy.planner.settings import Settings
from proxy.report import report_plan
from proxy.sources.dumps import parse_dump
from tests.builders import a_slice, service, slice_endpoint
from tests.small_worlds import NODE, small_changes
from tests.strategies import kind_of

SETTINGS = Settings(NODE, (CIDR("10.244.0.0/16"), CIDR("fd00:244::/64")), ("192.0.2.0/24",), Mode.ALWAYS)


@given(st.lists(small_changes(), max_size=8))
@settings(max_examples=30)
def test_a_dump_gives_the_same_plan_and_settings(events: list[Changed]) -> None:
    snapshot, _ = apply_events(EMPTY, events)

    dump = parse_dump(render_dump(snapshot, SETTINGS), "here")

    read = add_skipped(apply_events(EMPTY, dump.changes)[0], dump.facts)
    found = read_settings(dump.facts)
    assert found == SETTINGS
    assert report_plan(read, found) == report_plan(snapshot, SETTINGS)


def test_a_dump_tells_what_its_source_skipped() -> None:
    reasons = (Skipped("Service default/old", "external-name"),)
    snapshot, _ = apply_events(EMPTY, [Changed(Kind.SERVICE, "default/old", None, reasons)])

    dump = parse_dump(render_dump(snapshot, SETTINGS), "here")

    assert add_skipped(EMPTY, dump.facts).skipped == {(Kind.SERVICE, "default/old"): reasons}


def test_equal_states_give_equal_bytes_whatever_came_first() -> None:
    events = [
        Changed(kind_of(one), one.name, one)
        for one in (service(), service("default/a"), a_slice([slice_endpoint()]), a_slice((), "default/web-0"))
    ]

    first, _ = apply_events(EMPTY, events)
    second, _ = apply_events(EMPTY, reversed(events))

    body = render_dump(first, SETTINGS)
    assert body == render_dump(second, SETTINGS)
    assert body.endswith(b"}\n")


def test_a_dump_is_a_list_as_kubectl_writes_it() -> None:
    snapshot, _ = apply_events(EMPTY, [Changed(kind_of(service()), "default/web", service())])

    document = msgspec.json.decode(render_dump(snapshot, SETTINGS))

    assert (document["apiVersion"], document["kind"]) == ("v1", "List")
    assert [item["kind"] for item in document["items"]] == ["Service"]
    assert document["closeby"]["node"] == NODE


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param(None, id="no key of ours"),
        pytest.param({}, id="an empty one"),
        pytest.param({"node": 7}, id="one with a field of another type"),
    ],
)
def test_a_plain_list_brings_no_settings(extra: object) -> None:
    assert read_settings(extra) is None
    assert add_skipped(EMPTY, extra) == EMPTY


def test_settings_of_an_older_dump_have_todays_defaults() -> None:
    assert read_settings({"node": "n7"}) == Settings(NodeName("n7"))
