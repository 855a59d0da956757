"""Whether the promises about a load-balancer address were kept, by what a client outside saw. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from e2e.lan.measure import Window, longest_gap
from e2e.world.clients import Outcome, Record

LOST_S = 3.0  # promised is about one; a busy machine adds to it
NOBODY = ""


class Wanted(NamedTuple):
    """What is promised of a Service's address when all is well."""

    nodes: frozenset[str]  # whose pods may answer, on whichever node the address is
    near: bool  # only those of the owner's node
    on: frozenset[str] | None = None  # where it may be announced; None: anywhere


class Asked(NamedTuple):
    """What a client saw of one address."""

    owners: frozenset[str]  # as the announcers have it: one, if they agree
    answers: Mapping[str, int]  # by the pod's node
    failed: int

    @property
    def near(self) -> float:
        """The share that pods of the owner's node answered."""
        return share(self.answers, self.owners)


def judge_asked(wanted: Wanted, asked: Asked) -> tuple[str, ...]:
    """Complaints, in words; () if the promise was kept."""
    complaints = complain_of_owners(asked.owners)
    complaints += [f"announced by {node}" for node in sorted(asked.owners - (wanted.on or asked.owners) - {NOBODY})]
    complaints += [f"{asked.failed} without an answer"] if asked.failed else []
    nodes = wanted.nodes & asked.owners if wanted.near else wanted.nodes
    complaints += [f"{node} answered" for node in sorted(asked.answers.keys() - nodes)]
    complaints += [f"{node} never answered" for node in sorted(nodes - asked.answers.keys())]
    return tuple(complaints)


def complain_of_owners(owners: Collection[str]) -> list[str]:
    """Of another number than one."""
    if not owners or NOBODY in owners:
        return ["nobody announces it"]
    return [f"announced by {' and '.join(sorted(owners))}"] if len(owners) > 1 else []


class Fate(NamedTuple):
    """What an act may cost: whether the address moves, and how long it may be dark; 0: not one answer is lost."""

    moves: bool
    dark_s: float = 0.0


class Moved(NamedTuple):
    """What the client saw of an act."""

    owner: tuple[str, str]  # before and after, as the announcers have it
    before: Mapping[str, int]  # answers by the pod's node
    after: Mapping[str, int]  # from the last moment on that was lost, or that the owner before answered
    dark_s: float  # the longest time between two answers
    lost: int
    complaints: tuple[str, ...]

    @property
    def near(self) -> tuple[float, float]:
        """The share that pods of the owner's node answered, before and after."""
        return share(self.before, self.owner[:1]), share(self.after, self.owner[1:])


def judge_moved(
    fate: Fate, owner: tuple[str, str], records: Sequence[Record], window: Window, nodes: Mapping[str, str]
) -> Moved:
    """The client's attempts, all at one address, and the node of each pod that may answer."""
    answered = [record for record in records if record.outcome is Outcome.ANSWERED]
    lost = [record for record in records if record.outcome is not Outcome.ANSWERED and record.began in window]
    settled = max((record.began for record in lost), default=window.began)
    if owner[0] != owner[1]:
        late = [r.began for r in answered if r.began in window and nodes.get(r.name) == owner[0]]
        settled = max([settled, *late])
    dark_s = longest_gap((record.began + record.took_s for record in answered), window)
    before = _count((r for r in answered if r.began < window.began), nodes)
    after = _count((r for r in answered if r.began > settled), nodes)
    complaints = [] if (owner[0] != owner[1]) is fate.moves else [_move_words(owner)]
    complaints += [f"{len(lost)} lost"] if lost and not fate.dark_s else []
    complaints += [f"dark for {dark_s:.1f} s"] if fate.dark_s and dark_s > fate.dark_s else []
    complaints += [] if after else ["no answer at the end"]
    complaints += [f"{node} answered at the end" for node in sorted(after.keys() - {owner[1]})]
    return Moved(owner, before, after, dark_s, len(lost), tuple(complaints))


def share(answers: Mapping[str, int], nodes: Collection[str]) -> float:
    """The part of all that these nodes answered; 0.0 without any."""
    every = sum(answers.values())
    return sum(answers.get(node, 0) for node in nodes) / every if every else 0.0


def _count(records: Iterable[Record], nodes: Mapping[str, str]) -> Counter[str]:
    return Counter(nodes.get(record.name, record.name) for record in records)


def _move_words(owner: tuple[str, str]) -> str:
    before, after = owner
    return f"it stayed on {before}" if before == after else f"it moved from {before} to {after}"
