"""Whether a promise was kept, by the servers' own answers. Pure.

A random choice can't be told from a broken one by one connection, so the numbers are chosen: with `count_tries` of them
an endpoint that is chosen at random stays unseen less than once in 10^9 runs.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from e2e.demo.promises import Promise
from e2e.world.clients import Outcome, Record, Tally

_LEAST_TRIES = 100
_REFUSED_TRIES = 50
_DROPPED_TRIES = 10  # each of them takes its whole time-out
_UNSEEN = 1e-9
SETTLE_S = 1.0  # a change must be followed by then
_STOOD_S = 0.25  # between two attempts: the machine stood still, and nobody can follow a change meanwhile

_OUTCOMES = {"reject": Outcome.REFUSED, "drop": Outcome.TIMED_OUT}


class Addresses(NamedTuple):
    """What sources mean to one visit."""

    own: frozenset[str]  # the client's
    of_node: frozenset[str]  # of the node that decides
    client: str  # the client's name, to know a server that was asked by itself


def count_tries(promise: Promise) -> int:
    """Connections to send so that every promised endpoint is seen, as good as surely.

    Of k endpoints, one at least is unseen after n tries with a probability of at most k (1 - 1/k)^n.
    """
    if promise.verdict != "dnat":
        return _REFUSED_TRIES if promise.verdict == "reject" else _DROPPED_TRIES
    k = len(promise.pods)
    if k < 2:
        return _LEAST_TRIES
    return max(_LEAST_TRIES, math.ceil(math.log(_UNSEEN / k) / math.log1p(-1 / k)))


def judge_tally(promise: Promise, tally: Tally, addresses: Addresses) -> tuple[str, ...]:
    """Complaints, in words; () if the promise was kept."""
    expected = _OUTCOMES.get(promise.verdict, Outcome.ANSWERED)
    complaints = [f"{n} {outcome.value}" for outcome, n in tally.outcomes.items() if outcome is not expected]
    if promise.verdict != "dnat":
        return tuple(complaints)
    answered = set(tally.answers)
    complaints += [f"{pod} answered" for pod in sorted(answered - promise.pods)]
    complaints += [f"{pod} never answered" for pod in sorted(promise.pods - answered)]
    complaints += sorted(
        f"{name} saw {source}"
        for name, source in tally.seen
        if source not in expected_sources(promise, name, addresses)
    )
    return tuple(complaints)


def expected_sources(promise: Promise, server: str, addresses: Addresses) -> frozenset[str]:
    """What the server may see as the client's address: one that asks itself is masqueraded, or its answer is lost."""
    hidden = promise.masqueraded or server == addresses.client
    return addresses.of_node if hidden else addresses.own


class Change(NamedTuple):
    """How one stream of connections went over from one promise to another; times from the write, seconds."""

    before: Mapping[str, int]  # answers until the write, by pod or outcome
    after: Mapping[str, int]  # answers from the change on
    first_new_s: float | None  # when the first connection began that only the new plan allows; None: there is none
    last_old_s: float | None  # when the last one began that only the old plan allows
    failed: int  # connections without an answer that both plans promise one
    complaints: tuple[str, ...]


def judge_change(
    promises: tuple[Promise, Promise], records: Sequence[Record], written: float, addresses: Addresses
) -> Change:
    """Sort a stream's attempts, all of one target, by the plans that allow them."""
    old, new = promises
    until = [r for r in records if r.began < written]
    since = [r for r in records if r.began >= written]
    only_new = [r.began - written for r in since if _fits(new, r, addresses) and not _fits(old, r, addresses)]
    only_old = [r.began - written for r in since if _fits(old, r, addresses) and not _fits(new, r, addresses)]
    neither = [r for r in since if not _fits(old, r, addresses) and not _fits(new, r, addresses)]
    settled = [r for r in since if not only_old or r.began - written > only_old[-1]]
    unserved = [r for r in records if r.outcome is not Outcome.ANSWERED]
    failed = len(unserved) if old.verdict == new.verdict == "dnat" else 0
    complaints = [f"before: {_name(r)}" for r in until if not _fits(old, r, addresses)]
    complaints += [f"after: {_name(r)}" for r in neither]
    late = only_old and only_old[-1] - _stood(since, written, only_old[-1]) > SETTLE_S
    complaints += [f"the old plan still after {only_old[-1]:.1f} s"] if late else []
    complaints += ["the new plan never followed"] if old != new and only_old and not settled else []
    complaints += [f"{pod} never answered" for pod in sorted(new.pods - {r.name for r in settled})]
    return Change(
        before=_count(until),
        after=_count(settled),
        first_new_s=only_new[0] if only_new else None,
        last_old_s=only_old[-1] if only_old else None,
        failed=failed,
        complaints=tuple(dict.fromkeys(complaints)),
    )


def _stood(records: Sequence[Record], written: float, until_s: float) -> float:
    """How long nothing was tried, of so many seconds after the write."""
    times = [written, *(record.began for record in records if record.began - written <= until_s)]
    return sum(later - earlier for earlier, later in pairwise(times) if later - earlier > _STOOD_S)


def _fits(promise: Promise, record: Record, addresses: Addresses) -> bool:
    if promise.verdict != "dnat":
        return record.outcome is _OUTCOMES[promise.verdict]
    sources = expected_sources(promise, record.name, addresses)
    return record.name in promise.pods and record.source in sources


def _count(records: Iterable[Record]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for record in records:
        counts[_name(record)] = counts.get(_name(record), 0) + 1
    return dict(sorted(counts.items()))


def _name(record: Record) -> str:
    return record.name or record.outcome.value
