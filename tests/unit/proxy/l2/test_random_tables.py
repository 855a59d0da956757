"""Laws for any tables of candidates, which differ from node to node, while nothing fails.

Nodes read their own copies of the API, so for as long as one likes they may see other candidates (F1).
"""

from functools import partial
from typing import NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from endpointslice.types import NodeName
from proxy.l2.actions import Note
from proxy.l2.candidates import Candidate, Table, Vip, Why
from proxy.l2.events import TableChanged
from proxy.l2.types import NOBODY, Key, Tier
from tests.l2.node import Noted
from tests.l2.simulation import SAMPLE_S, Simulation
from tests.l2.stories import started

NAMES = ("n1", "n2", "n3")
AT_ONCE_S = 0.1  # two that take an address which nobody has know of each other after so long
SETTLED_S = 15.0
EXAMPLES = min(settings().max_examples // 3, 100)  # each is up to six minutes on the simulated LAN
REASONS = (Why.NO_ADVERTISEMENT, Why.PINNED_ELSEWHERE, Why.NOT_READY, Why.OUT_OF_SERVICE, Why.CORDONED, Why.EXCLUDED)
OF_FAILURES = frozenset(
    {
        *(Note.LAST_RESORT, Note.YIELDED, Note.DEFENDED, Note.ADDRESS_CONFLICT, Note.MAJORITY_LOST, Note.PARTITION),
        *(Note.MEMBER_SILENT, Note.LATE, Note.CLOCK_STOOD, Note.SUSPENDED),
    }
)


class Seen(NamedTuple):
    """What the API says of one node, to some nodes."""

    why: Why
    tier: Tier
    preference: int


class Change(NamedTuple):
    """What these nodes' proxies believe from now on of these addresses, by number."""

    readers: frozenset[str]
    addresses: frozenset[int]
    rows: tuple[Seen, ...]  # of each node
    local: bool
    prefer_close: bool
    programmed: bool
    withdrawn: bool
    then_s: float


ROWS = st.builds(
    Seen,
    st.one_of(st.just(Why.ELIGIBLE), st.just(Why.ELIGIBLE), st.sampled_from(REASONS)),
    st.sampled_from(Tier),
    st.sampled_from([0, 0, 10, 50]),
)
CHANGES = st.builds(
    Change,
    st.sets(st.sampled_from(NAMES), min_size=1).map(frozenset),
    st.sets(st.integers(0, 3), min_size=1).map(frozenset),
    st.tuples(ROWS, ROWS, ROWS),
    st.booleans(),
    st.booleans(),
    st.sampled_from([True, True, True, False]),
    st.sampled_from([False, False, False, True]),
    st.sampled_from([0.0, 0.05, 0.5, 1.2, 3.0, 12.0, 62.0]),
)


def candidate(change: Change, name: str) -> Candidate:
    why, tier, preference = change.rows[NAMES.index(name)]
    if change.local and tier is Tier.NONE and why is Why.ELIGIBLE:
        why = Why.NO_LOCAL_ENDPOINT
    return Candidate(NodeName(name), why, tier, preference)


def make_vip(change: Change, key: Key, reader: str) -> Vip:
    others = tuple(candidate(change, name) for name in NAMES if name != reader)
    _readers, _addresses, _rows, local, close, programmed, *_rest = change
    return Vip(key, candidate(change, reader), others, local=local, prefer_close=close, programmed=programmed)


def apply(simulation: Simulation, change: Change) -> None:
    """A few milliseconds apart."""
    for name in change.readers:
        vips = dict(simulation.nodes[name].table.vips)
        for number in change.addresses:
            key = simulation.keys[number]
            vips[key] = make_vip(change, key, name)
            if change.withdrawn:
                del vips[key]
        table = simulation.nodes[name].table = Table(vips)
        simulation.after(simulation.chance.random() / 100, partial(simulation.tell, name, TableChanged(table)))
    simulation.run(0.02 + change.then_s)


def played(seed: int, changes: list[Change]) -> Simulation:
    simulation = started(seed)
    for change in changes:
        apply(simulation, change)
    return simulation


def took_at_once(simulation: Simulation, replaced: Noted) -> bool:
    """Whether it had just taken what nobody had, as another did."""
    return any(
        taken.node == replaced.node and taken.report.key == replaced.report.key and taken.at_s >= since_s
        for taken in simulation.noted(Note.TAKEN)
        if (since_s := replaced.at_s - AT_ONCE_S) and taken.at_s <= replaced.at_s
    )


def only_lingered(simulation: Simulation, replaced: Noted) -> bool:
    """Whether it had given the address away, and answered none but those that still asked its own MAC."""
    said = [
        noted.report.note
        for noted in simulation.notes
        if (noted.node, noted.report.key) == (replaced.node, replaced.report.key) and noted.at_s < replaced.at_s
    ]
    return said[-1:] == [Note.GIVEN]


PLAIN = (False, False, True, False)  # no policy; programmed
LOCAL = (True, False, True, False)


def seen(*tiers: Tier) -> tuple[Seen, Seen, Seen]:
    one, two, three = (Seen(Why.ELIGIBLE, tier, 0) for tier in tiers)
    return one, two, three


GIVEN_AND_LET_GO = [  # n2 is given an address and has one too many, as members have been stable for a minute
    Change(frozenset({"n1"}), frozenset({0, 2}), seen(Tier.READY, Tier.READY, Tier.DRAINING), *PLAIN, 62.0),
    Change(frozenset({"n1"}), frozenset({2}), seen(Tier.NONE, Tier.READY, Tier.READY), *LOCAL, 0.0),
    Change(frozenset({"n1"}), frozenset({0}), seen(Tier.READY, Tier.READY, Tier.READY), *PLAIN, 0.0),
    Change(frozenset({"n1"}), frozenset({0}), seen(Tier.READY, Tier.READY, Tier.READY), *PLAIN, 0.0),
]


@given(st.integers(0, 3), st.lists(CHANGES, max_size=6))
@example(0, GIVEN_AND_LET_GO)
@settings(max_examples=EXAMPLES)
def test_nobody_loses_an_address_but_by_an_offer_or_by_letting_go(seed: int, changes: list[Change]) -> None:
    """Invariants 2 and 5."""
    simulation = played(seed, changes)

    assert [noted for noted in simulation.notes if noted.report.note in OF_FAILURES] == []
    assert [noted for noted in simulation.noted(Note.TAKEN) if noted.report.member != NOBODY] == []
    replaced = [noted for noted in simulation.noted(Note.REPLACED) if not only_lingered(simulation, noted)]
    assert [noted for noted in replaced if not took_at_once(simulation, noted)] == []
    assert simulation.longest_s(2, 106.0) <= SAMPLE_S * 1.5


@given(st.integers(0, 3), st.lists(CHANGES, max_size=3), CHANGES)
@settings(max_examples=EXAMPLES)
def test_once_all_tables_are_equal_each_address_is_a_fit_nodes_if_there_is_one(
    seed: int, changes: list[Change], last: Change
) -> None:
    """Invariants 7 and 13: under policy Local never a holder without an endpoint where another has one."""
    last = last._replace(
        readers=frozenset(NAMES), addresses=frozenset(range(4)), programmed=True, withdrawn=False, then_s=SETTLED_S
    )
    simulation = played(seed, [*changes, last])
    fit = {name for name in NAMES if candidate(last, name).why is Why.ELIGIBLE}

    for key in simulation.keys:
        answering = simulation.answering[key]
        assert len(answering) == 1 or not fit
        assert set(answering) <= fit or not fit
        if last.local and not fit and all(candidate(last, name).why is Why.NO_LOCAL_ENDPOINT for name in NAMES):
            assert answering == (), "nobody leads clients astray"
