"""Rule 1's order: words of one member may overtake each other on their way, and all of them are heard.

What one step says goes out in one moment, a claim and an offer, say, and a network may change their order. A word that
was overtaken counts for what the newer ones don't speak of: a claim and a release of one version would otherwise undo
each other, and two would answer until the next heartbeat.
"""

from typing import NamedTuple

from msgspec.structs import replace

from proxy.l2.messages import Body, Claims, Clients, Offer, Release, Want
from proxy.l2.types import Key, key_hash

KEPT = 16  # of each member: more than a step sends to one of them, but for lists, which are asked for again
HEARD_LATE = (Claims, Want, Offer, Release, Clients)  # heartbeats that were overtaken say nothing


class Word(NamedTuple):
    """What was heard: the number, and the keys of which it told who has them."""

    seq: int
    keys: frozenset[Key] = frozenset()
    low: int = 0  # and all whose hashes are from low to last: both have 64 bits, as all that is handed over
    last: int = -1

    def covers(self, key: Key) -> bool:
        """Whether it told who has this one."""
        return key in self.keys or self.low <= key_hash(key) <= self.last

    def meets(self, claims: Claims) -> bool:
        """Whether it told of any key for which that list is complete."""
        return (self.low < claims.high and claims.low <= self.last) or any(
            claims.low <= key_hash(key) < claims.high for key in self.keys
        )


Words = tuple[Word, ...]  # the newest, in the order of their numbers


def note_word(words: Words, seq: int, body: Body | None) -> Words:
    """With one more, if it is of a kind that may be heard late."""
    if not isinstance(body, HEARD_LATE):
        return words
    word = Word(seq)
    if isinstance(body, Claims):
        listed = body.low < body.high
        keys = frozenset() if listed else frozenset(entry.key for entry in body.entries)
        word = Word(seq, keys, body.low, body.high - 1)
    return tuple(sorted((*words, word), key=lambda one: one.seq))[-KEPT:]


def may_be_new(words: Words, seq: int, body: Body | None) -> bool:
    """Whether a word with a number below the newest surely wasn't heard. One below all that are kept may have been."""
    if not isinstance(body, HEARD_LATE) or _is_forgotten(words, seq):
        return False
    return all(word.seq != seq for word in words)


def news_of(words: Words, seq: int, claims: Claims) -> Claims | None:
    """What of it no newer word tells otherwise; None: nothing. A list is heard whole or not at all."""
    if _is_forgotten(words, seq):
        return None
    newer = [word for word in words if word.seq > seq]
    if claims.low < claims.high:
        return None if any(word.meets(claims) for word in newer) else claims
    entries = tuple(entry for entry in claims.entries if not any(word.covers(entry.key) for word in newer))
    return replace(claims, entries=entries) if entries else None


def _is_forgotten(words: Words, seq: int) -> bool:
    """Whether nobody knows any more what came about then."""
    return len(words) >= KEPT and seq <= words[0].seq
