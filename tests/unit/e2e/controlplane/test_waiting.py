"""Waiting on a machine that stands still now and then."""

import time

import pytest

from e2e.controlplane.waiting import sleep_awake


def test_a_sleep_goes_on_for_as_long_as_the_machine_stood_still(monkeypatch: pytest.MonkeyPatch) -> None:
    now, stalls = 0.0, iter([0.0, 0.7, 0.0, 5.0])

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds + next(stalls, 0.0)

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: now)

    sleep_awake(0.5)

    assert now == pytest.approx(0.5 + 0.7 + 5.0 + 2 * 0.05)
