"""EFFECT: SIGTERM and SIGHUP end the program the way Ctrl-C does: by an exception, so that everything is cleaned up."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_ALL = (signal.SIGINT, *_ENDING)


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """SystemExit(128 + number) on SIGTERM or SIGHUP; nothing is changed on other threads, or where handlers are set."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _ENDING}
    for number, handler in before.items():
        if handler is signal.SIG_DFL:
            signal.signal(number, _exit)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def signals_held() -> Iterator[None]:
    """Ending signals that arrive inside are seen after it. Processes started inside keep them blocked."""
    held = signal.pthread_sigmask(signal.SIG_BLOCK, _ALL)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _exit(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)
