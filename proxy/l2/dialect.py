"""Which key signs, and which layout is spoken: the newest that everybody who is heard understands (F9).

A Secret and an update reach the nodes one after another. Who is heard counts before its session is accepted, as it must
understand the challenge; who is silent doesn't, else a dead member would hold the others to what they lose one by one.
"""

from collections.abc import Iterable
from typing import NamedTuple

from proxy.l2.state import Member
from proxy.l2.types import Settings


class Dialect(NamedTuple):
    """Of one message."""

    key_id: int
    format: int


def choose_dialect(settings: Settings, members: Iterable[Member], now: float) -> Dialect:
    """For all that is sent now."""
    heard = [member for member in members if not member.left and _heard_s(member, now) < settings.timing.detect_s]
    oldest, newest = settings.formats
    known = min([settings.keys[-1], *(member.newest_key for member in heard)])
    return Dialect(
        known if known in settings.keys else settings.keys[0],
        max(oldest, min([newest, *(member.formats[1] for member in heard)])),
    )


def _heard_s(member: Member, now: float) -> float:
    """How long ago, on whatever channel."""
    return now - max(member.word_s, member.asked_s)
