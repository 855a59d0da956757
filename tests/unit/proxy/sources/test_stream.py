import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.decode import Changed, WatchLine
from endpointslice.types import Kind
from proxy.sources.stream import (
    MAX_DELAY_S,
    MIN_DELAY_S,
    After,
    LineError,
    LineSplitter,
    choose_after,
    next_delay,
    read_batch,
)

A = Changed(Kind.SERVICE, "shop/a", None)
B = Changed(Kind.SERVICE, "shop/b", None)
GONE = WatchLine("ERROR", None, "", 410, "too old")


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        pytest.param([b"one\n"], [b"one"], id="a line in one piece"),
        pytest.param([b"o", b"n", b"e\n"], [b"one"], id="a line in many pieces"),
        pytest.param([b"one\ntwo\nthr", b"ee\n"], [b"one", b"two", b"three"], id="lines and a part in one piece"),
        pytest.param([b"one", b"\n", b"two", b"\n"], [b"one", b"two"], id="the newline comes alone"),
        pytest.param([b"one\n\n\ntwo\n"], [b"one", b"two"], id="empty lines are none"),
        pytest.param([b"one\ntw"], [b"one"], id="what is cut off is no line"),
        pytest.param([b"\xc3", b"\xa9\n"], ["é".encode()], id="a character may be cut in two"),
        pytest.param([], [], id="nothing"),
    ],
)
def test_lines(pieces: list[bytes], lines: list[bytes]) -> None:
    splitter = LineSplitter()

    assert lines == [line for piece in pieces for line in splitter.feed(piece)]


def test_a_stream_without_lines_is_given_up_before_it_fills_the_memory() -> None:
    splitter = LineSplitter(most_bytes=100)
    for _line in range(20):
        splitter.feed(b"x" * 90 + b"\n")
    splitter.feed(b"x" * 60)

    with pytest.raises(LineError, match="more than 100 bytes"):
        splitter.feed(b"x" * 60)


@given(st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line)), st.data())
def test_cutting_anywhere_gives_the_same_lines(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)))))
    splitter = LineSplitter()
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]

    assert lines == [line for piece in pieces for line in splitter.feed(piece)]


@pytest.mark.parametrize(
    ("lines", "changes", "version", "failed"),
    [
        pytest.param([], (), "", None, id="no lines say nothing"),
        pytest.param(
            [WatchLine("ADDED", A, "5"), WatchLine("MODIFIED", B, "6")], (A, B), "6", None, id="changes in their order"
        ),
        pytest.param([WatchLine("BOOKMARK", None, "9")], (), "9", None, id="a bookmark only moves the version"),
        pytest.param(
            [WatchLine("ADDED", A, "5"), GONE, WatchLine("ADDED", B, "6")], (A,), "5", GONE, id="an error ends it"
        ),
        pytest.param([WatchLine("ADDED", A, "")], (A,), "", None, id="a line without version keeps the last one"),
    ],
)
def test_what_lines_say(
    lines: list[WatchLine], changes: tuple[Changed, ...], version: str, failed: WatchLine | None
) -> None:
    assert (changes, version, failed) == read_batch(lines)


def test_a_line_that_is_no_event_ends_the_batch_before_it() -> None:
    batch = read_batch([WatchLine("ADDED", A, "5"), None, WatchLine("ADDED", B, "6")])

    assert (batch.changes, batch.resource_version) == ((A,), "5")
    assert batch.failed is not None
    assert batch.failed.code == 0


@pytest.mark.parametrize(
    ("status", "reason", "silent", "after"),
    [
        pytest.param(410, "too old resource version", False, After.RELIST, id="an expired version"),
        pytest.param(400, "invalid resource version", False, After.RELIST, id="a version of another server"),
        pytest.param(
            504, "Too large resource version: 9, current: 5", False, After.RELIST, id="a version of the future"
        ),
        pytest.param(0, "Read timed out.", True, After.RELIST, id="two bookmarks missed"),
        pytest.param(0, "Connection refused", False, After.RESUME, id="no server"),
        pytest.param(503, "shutting down", False, After.RESUME, id="a server that ends"),
        pytest.param(504, "Timeout", False, After.RESUME, id="a time-out of the server"),
        pytest.param(401, "Unauthorized", False, After.RESUME, id="a token that expired"),
        pytest.param(429, "too many requests", False, After.RESUME, id="a server that is busy"),
    ],
)
def test_how_to_go_on(status: int, reason: str, silent: bool, after: After) -> None:  # noqa: FBT001  # a column of the table
    assert after is choose_after(status, reason, silent=silent)


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_delay_is_never_longer_than_half_a_minute(attempt: int, randomness: float) -> None:
    assert 0 <= next_delay(attempt, randomness) <= MAX_DELAY_S


def test_the_bound_of_the_delay_doubles_up_to_its_limit() -> None:
    bounds = [next_delay(attempt, 1.0) for attempt in range(1, 12)]

    assert bounds[:4] == [MIN_DELAY_S, MIN_DELAY_S * 2, MIN_DELAY_S * 4, MIN_DELAY_S * 8]
    assert bounds == sorted(bounds)
    assert bounds[-1] == MAX_DELAY_S


def test_the_delay_spreads_over_the_whole_range() -> None:
    assert next_delay(5, 0.0) == 0.0
    assert next_delay(5, 0.5) == next_delay(5, 1.0) / 2
