"""What a run's clients noticed, computed from what they wrote down. No I/O; all times are seconds of one clock."""

import math
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from itertools import groupby, pairwise
from typing import NamedTuple

ASK_INTERVAL_S = 0.05
STREAM_INTERVAL_S = 0.01


class Asked(NamedTuple):
    """What the cold client wrote down."""

    asked: Sequence[float]
    answers: Sequence[tuple[int, float, str]]  # number of the question, when, MAC
    announced: Sequence[tuple[float, str]]  # when, MAC


class Streamed(NamedTuple):
    """What the warm client wrote down."""

    sent: Sequence[float]
    answers: Sequence[tuple[int, float, str]]  # number of the datagram, when, node; in the order of their arrival


class Observed(NamedTuple):
    """All of a run's clients."""

    cold: Asked
    warm: Streamed
    connections: Sequence[str]  # what broke each of the established ones; "" if nothing did


class Figure(StrEnum):
    """What is told of a run."""

    DARK = "client dark, s"
    LOST = "datagrams lost of 100/s"
    COLD = "cold client without an answer, s"
    TWO = "two nodes answer, s"
    MOVES = "moves seen by the client"
    BROKEN = "established connections broken, of 20"
    ANNOUNCED = "gratuitous packets"


class Window(NamedTuple):
    """From the fault until the clients are stopped."""

    began: float
    ended: float

    def __contains__(self, moment: object) -> bool:
        return isinstance(moment, float) and self.began <= moment <= self.ended


class Spread(NamedTuple):
    """One figure of several runs."""

    p50: float
    p95: float
    most: float
    samples: int


def measure(observed: Observed, window: Window) -> dict[Figure, float]:
    """Every figure of one run."""
    cold, warm = observed.cold, observed.warm
    asked = {number for number, moment in enumerate(cold.asked) if moment in window}
    return {
        Figure.DARK: longest_gap((moment for _, moment, _ in warm.answers), window),
        Figure.LOST: float(count_lost(warm, window)),
        Figure.COLD: longest_gap((cold.asked[number] for number, *_ in cold.answers), window),
        Figure.TWO: count_doubles(cold.answers, asked) * ASK_INTERVAL_S,
        Figure.MOVES: float(count_moves(warm, window)),
        Figure.BROKEN: float(sum(1 for why in observed.connections if why)),
        Figure.ANNOUNCED: float(sum(1 for moment, _ in cold.announced if moment in window)),
    }


def longest_gap(moments: Iterable[float], window: Window) -> float:
    """The longest time in the window without one of the moments. Its ends count too: without any it is all of it.

    A steady stream's gap is its interval: that is the floor, not zero.
    """
    inside = sorted(moment for moment in moments if moment in window)
    return max(later - earlier for earlier, later in pairwise([window.began, *inside, window.ended]))


def count_lost(warm: Streamed, window: Window) -> int:
    """Datagrams sent in the window that were never answered."""
    answered = {number for number, *_ in warm.answers}
    return sum(1 for number, moment in enumerate(warm.sent) if moment in window and number not in answered)


def count_doubles(answers: Iterable[tuple[int, float, str]], asked: Collection[int]) -> int:
    """How many of these questions were answered by more than one MAC."""
    macs: dict[int, set[str]] = {}
    for number, _, mac in answers:
        if number in asked:
            macs.setdefault(number, set()).add(mac)
    return sum(1 for seen in macs.values() if len(seen) > 1)


def count_moves(warm: Streamed, window: Window) -> int:
    """How often another node answers than the one before, the last one before the window being the first of them."""
    inside = [name for _, moment, name in warm.answers if moment in window]
    before = [name for _, moment, name in warm.answers if moment < window.began][-1:]
    return max(0, sum(1 for _ in groupby([*before, *inside])) - 1)


def sole_owner(cold: Asked, since: float) -> str | None:
    """The MAC that alone answered every question asked from then on; None if several did, or one went unanswered."""
    questions = {number for number, moment in enumerate(cold.asked) if moment >= since}
    answered = [(number, mac) for number, _, mac in cold.answers if number in questions]
    macs = {mac for _, mac in answered}
    whole = questions <= {number for number, _ in answered}
    return macs.pop() if questions and whole and len(macs) == 1 else None


def spread(samples: Sequence[float]) -> Spread:
    """Of at least one sample. A percentile is the sample of nearest rank: the p95 of 20 is the second largest."""
    ordered = sorted(samples)
    return Spread(_rank(ordered, 0.5), _rank(ordered, 0.95), ordered[-1], len(ordered))


def _rank(ordered: Sequence[float], part: float) -> float:
    return ordered[math.ceil(len(ordered) * part) - 1]
