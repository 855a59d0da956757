"""Waiting for what other processes will do."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_EVERY_S = 0.05
_STOOD_S = 0.25  # for a twentieth of a second: that isn't a busy machine, it stood still


def wait_for(probe: Callable[[], T | None], what: str, *, timeout_s: float = 60.0) -> T:
    """The first answer of `probe` that is true; TimeoutError, naming `what` and the last answer, if none comes."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s:g} s: {what}; the last answer was {answer!r}")
        time.sleep(_EVERY_S)


def sleep_awake(seconds: float) -> None:
    """Sleep, and for as much longer as the machine stood still meanwhile: all that runs on it stood still, too."""
    left_s = seconds
    while left_s > 0:
        began = time.monotonic()
        time.sleep(min(_EVERY_S, left_s))
        took_s = time.monotonic() - began
        left_s -= took_s if took_s < _STOOD_S else 0.0
