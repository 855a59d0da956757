"""Whether our own clock stood while others' ran on: a virtual machine that was paused doesn't see it otherwise (F6).

A word may be late by seconds: the kernel keeps datagrams until it knows the next hop's MAC (two seconds were seen with
Linux 6.18). So a member's clock is judged by the least late of its recent words; a late one, and the next in time, say
nothing.
"""

from typing import NamedTuple

RECENT_S = 30.0  # a member whose own clock stood is believed again after twice that


class Clock(NamedTuple):
    """How far a member's clock is ahead of ours, of the least late words in two spans of time."""

    ahead_s: float
    before_s: float  # in the span before
    from_s: float  # the span's begin, by our clock

    def stood_s(self, clock_s: float, came_s: float) -> float:
        """For how long ours stood before a word of that time came."""
        return clock_s - came_s - max(self.ahead_s, self.before_s)


def note_clock(known: Clock | None, clock_s: float, came_s: float) -> Clock:
    """With one more word."""
    ahead_s = clock_s - came_s
    if known is None:
        return Clock(ahead_s, ahead_s, came_s)
    if came_s - known.from_s > RECENT_S:
        return Clock(ahead_s, known.ahead_s, came_s)
    return known if ahead_s <= known.ahead_s else known._replace(ahead_s=ahead_s)
