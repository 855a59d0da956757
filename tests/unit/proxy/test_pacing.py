"""When the next sync may start."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.pacing import LastSync, Pacing, next_sync_s

PACING = Pacing(min_gap_s=0.02, longest_retry_s=30.0)


@pytest.mark.parametrize(
    ("last", "expected_s"),
    [
        pytest.param(LastSync(), float("-inf"), id="the first one at once"),
        pytest.param(LastSync(100.0), 100.02, id="after a good one the least gap"),
        pytest.param(LastSync(100.0, failures=1), 100.1, id="soon after a refusal"),
        pytest.param(LastSync(100.0, failures=2), 100.2, id="later after the next"),
        pytest.param(LastSync(100.0, failures=4), 100.8, id="and later"),
        pytest.param(LastSync(100.0, failures=9), 125.6, id="until nearly the longest time"),
        pytest.param(LastSync(100.0, failures=10), 130.0, id="which is not passed"),
        pytest.param(LastSync(100.0, failures=100_000), 130.0, id="whatever the number of failures"),
    ],
)
def test_the_next_sync(last: LastSync, expected_s: float) -> None:
    assert next_sync_s(PACING, last) == pytest.approx(expected_s)


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_more_failures_never_mean_an_earlier_retry(fewer: int, more: int) -> None:
    fewer, more = sorted((fewer, more))

    assert next_sync_s(PACING, LastSync(0.0, fewer)) <= next_sync_s(PACING, LastSync(0.0, more))
