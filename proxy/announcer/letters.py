"""What has come in at the two ports since the last look, as messages in the order in which they were sent. No I/O."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from endpointslice.types import IP
from proxy.announcer.datagram import Refusal, parse_datagram, peek_beat, peek_number
from proxy.l2.messages import Beat, Message
from proxy.l2.types import Channel


class Letter(NamedTuple):
    """A datagram, from whom, and where it was heard."""

    channel: Channel
    sender: IP
    data: bytes
    age_s: float = 0.0  # since it came in


class Told(NamedTuple):
    """A genuine message."""

    letter: Letter
    message: Message


def order_letters(letters: Iterable[Letter], keys: Mapping[int, bytes]) -> tuple[list[Told], Counter[Refusal]]:
    """The genuine ones by their numbers, since one below another's counts as old; the rest counted by reason.

    Who wakes late finds heartbeats at one port that were sent after a claim at the other. Of a sender's heartbeats only
    the newest genuine one is there: it says all that those before it said, as if they had been lost.
    """
    told, refused = [], Counter[Refusal]()
    for alike in _group_beats(letters):
        for letter in alike:
            message = parse_datagram(letter.data, letter.channel, keys)
            if isinstance(message, Refusal):
                refused[message] += 1
                continue
            told.append(Told(letter, message))
            if isinstance(message.body, Beat) and not message.body.high:
                break
    return sorted(told, key=_number), refused


def _group_beats(letters: Iterable[Letter]) -> Iterable[list[Letter]]:
    """What seem to be heartbeats of one sender by falling numbers; all else alone.

    By what their headers say, which a stranger may have written: so the next one has its turn if one isn't genuine.
    """
    groups: dict[object, list[Letter]] = {}
    for at, letter in enumerate(letters):
        sender = peek_beat(letter.data)
        groups.setdefault(at if sender is None else (letter.channel, sender), []).append(letter)
    for alike in groups.values():
        if len(alike) > 1:
            alike.sort(key=lambda letter: peek_number(letter.data), reverse=True)
    return groups.values()


def _number(told: Told) -> int:
    return told.message.header.seq
