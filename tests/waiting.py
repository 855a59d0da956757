"""Waiting for what another thread or process will do."""

import time
from collections.abc import Callable

_PATIENCE_S = 60.0  # a test that waits this long has failed
_EVERY_S = 0.005


def until(true: Callable[[], object]) -> None:
    """Returns once it is true; AssertionError if it never is."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while not true():
        assert time.monotonic() < deadline_s, "it never came true"
        time.sleep(_EVERY_S)
