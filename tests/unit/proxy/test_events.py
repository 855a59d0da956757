"""What a batch of events means for metrics and logs."""

from datetime import UTC, datetime

import pytest

from endpointslice.snapshot import EMPTY, Changed, Listed, Touched, apply_events
from endpointslice.types import Kind, ServiceName, Skipped
from proxy.events import count_changes, merge_touched, new_skipped, new_triggers
from proxy.planner.planner import NOTHING
from tests.builders import a_slice, nodes, service

STARTED = datetime(2026, 1, 1, 12, 0, 0, 900_000, UTC)
BEFORE, AFTER = "2026-01-01T11:59:59Z", "2026-01-01T12:00:01.25Z"
WEB = Changed(Kind.SERVICE, "default/web", service())
BROKEN = Changed(Kind.SERVICE, "default/x", None, (Skipped("Service default/x", "bad-object", "$.spec"),))


def triggered(at: str) -> Changed:
    return Changed(Kind.ENDPOINT_SLICE, "default/web-1", a_slice(triggered=at))


def test_touched_names_add_up() -> None:
    a = Touched(frozenset({ServiceName("a/a")}), nodes("n1"), frozenset(), frozenset(), service_cidrs=False)
    b = Touched(frozenset({ServiceName("b/b")}), nodes("n1"), frozenset(), frozenset(), service_cidrs=True)

    assert merge_touched(a, b) == Touched(
        frozenset({ServiceName("a/a"), ServiceName("b/b")}), nodes("n1"), frozenset(), frozenset(), service_cidrs=True
    )
    assert merge_touched(a, NOTHING) == a


def test_objects_are_counted_within_lists_too() -> None:
    batch: list[Changed | Listed] = [Listed(Kind.SERVICE, (WEB, BROKEN)), triggered(AFTER), WEB]

    assert count_changes(batch) == {Kind.SERVICE: 3, Kind.ENDPOINT_SLICE: 1}


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        pytest.param(AFTER, [datetime(2026, 1, 1, 12, 0, 1, 250_000, UTC)], id="after our start"),
        pytest.param("2026-01-01T13:00:01+01:00", [datetime(2026, 1, 1, 12, 0, 1, 0, UTC)], id="another time zone"),
        pytest.param("2026-01-01T12:00:00Z", [datetime(2026, 1, 1, 12, tzinfo=UTC)], id="in our start's second"),
        pytest.param(BEFORE, [], id="before our start"),
        pytest.param("", [], id="none given"),
        pytest.param("yesterday", [], id="no time"),
        pytest.param("2026-01-01T12:00:01", [], id="a time without its zone"),
    ],
)
def test_when_pods_changed(at: str, expected: list[datetime]) -> None:
    assert list(new_triggers(EMPTY, [WEB, triggered(at)], STARTED)) == expected


def test_a_trigger_that_was_seen_counts_once() -> None:
    held, _ = apply_events(EMPTY, [triggered(AFTER)])

    assert list(new_triggers(held, [triggered(AFTER)], STARTED)) == []


def test_what_cannot_be_used_is_told_once() -> None:
    after, _ = apply_events(EMPTY, [BROKEN, WEB])
    assert list(new_skipped(EMPTY, after, [BROKEN, WEB])) == list(BROKEN.skipped)

    again, _ = apply_events(after, [BROKEN])
    assert list(new_skipped(after, again, [BROKEN])) == []
