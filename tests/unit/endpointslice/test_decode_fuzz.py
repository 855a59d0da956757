"""Any bytes give changes or a DecodeError, and whatever was taken can be planned and packed: nothing else escapes."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.decode import DecodeError, convert_document, decode_list, decode_object, decode_watch_line
from endpointslice.encode import encode_snapshot
from endpointslice.snapshot import EMPTY, Changed, apply_events
from endpointslice.types import CIDR, Kind, NodeName
from proxy.dump import render_dump
from proxy.kernel.transaction import plan_elements
from proxy.planner.planner import NOTHING, Moment, Planner, plan_all
from proxy.planner.settings import Settings
from tests.fuzz_inputs import SEEDS, damaged, odd_objects

SETTINGS = Settings(NodeName("n1"), cluster_cidrs=(CIDR("10.244.0.0/16"),))
LISTS = {
    kind: json.dumps({"kind": f"{kind}List", "metadata": {"resourceVersion": "7"}, "items": seeds}).encode()
    for kind, seeds in SEEDS.items()
}
EVENTS = {
    kind: [json.dumps({"type": "ADDED", "object": seed}).encode() for seed in seeds] for kind, seeds in SEEDS.items()
}


@pytest.mark.parametrize("kind", Kind)
@given(st.data())
def test_any_bytes_are_a_page_or_a_decode_error(kind: Kind, data: st.DataObject) -> None:
    with contextlib.suppress(DecodeError):
        decode_list(kind, data.draw(damaged([LISTS[kind]])))


@pytest.mark.parametrize("kind", Kind)
@given(st.data())
def test_any_line_is_an_event_or_none(kind: Kind, data: st.DataObject) -> None:
    line = data.draw(damaged(EVENTS[kind]))

    decode_watch_line(kind, line)
    decode_object(kind, line)


@given(st.data())
def test_whatever_is_taken_can_be_planned_packed_and_dumped(data: st.DataObject) -> None:
    changes = [_watched(kind, data.draw(odd_objects(kind))) for kind in Kind]
    snapshot, _ = apply_events(EMPTY, changes)
    planner = Planner(SETTINGS)

    planner.update(snapshot, NOTHING, Moment({}, frozenset(), 0.0))
    plan_elements(planner.desired.pending({}))
    plan_all(snapshot, SETTINGS)
    encode_snapshot(snapshot)
    render_dump(snapshot, SETTINGS)


@pytest.mark.parametrize("kind", [Kind.SERVICE, Kind.NODE, Kind.DAEMON_SET, Kind.SERVICE_CIDR, Kind.POD])
@given(st.data())
def test_the_api_and_a_manifest_agree_on_what_can_be_used(kind: Kind, data: st.DataObject) -> None:
    document = data.draw(odd_objects(kind))
    document["kind"] = kind.value

    assert [change.object for change in convert_document(document)] == [_watched(kind, document).object]


def _watched(kind: Kind, document: dict[str, Any]) -> Changed:
    return decode_object(kind, json.dumps(document).encode())


@pytest.mark.parametrize("depth", [900, 2000, 100_000])
def test_nesting_is_bounded(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    body = b'{"kind":"ServiceList","items":[{"metadata":{"name":"web","x":%b}}]}' % deep

    with contextlib.suppress(DecodeError):
        decode_list(Kind.SERVICE, body)
    decode_watch_line(Kind.SERVICE, b'{"type":"ADDED","object":{"metadata":{"name":"web"},"x":%b}}' % deep)
    decode_object(Kind.SERVICE, b'{"metadata":{"name":"web"},"x":%b}' % deep)
