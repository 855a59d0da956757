"""What has come in at the two ports since the last look, as messages in the order in which they were sent. No I/O."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from endpointslice.types import IP
from proxy.announcer.datagram import Refusal, parse_datagram
from proxy.l2.messages import Message
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

    Who wakes late finds heartbeats at one port that were sent after a claim at the other.
    """
    told, refused = [], Counter[Refusal]()
    for letter in letters:
        message = parse_datagram(letter.data, letter.channel, keys)
        if isinstance(message, Refusal):
            refused[message] += 1
        else:
            told.append(Told(letter, message))
    return sorted(told, key=lambda one: one.message.header.seq), refused
