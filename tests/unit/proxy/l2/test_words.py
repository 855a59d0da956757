"""Words of one member that overtake each other: each is heard once, and none undoes a newer one."""

import random
from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import IP
from proxy.l2.machine import step
from proxy.l2.messages import Beat, Body, Challenge, Claims, ClaimState, Offer, Want
from proxy.l2.state import Member, State
from proxy.l2.types import DEFAULT, MASK, NODE_NETWORK, Channel, Key, MemberId, Version, key_hash
from proxy.l2.words import KEPT, Words, may_be_new, news_of, note_word
from tests.l2.simulation import Simulation
from tests.l2.stories import others, started, word_of

KEYS = tuple(Key(IP(f"192.0.2.{number}"), Channel("192.0.2.0/24")) for number in range(240, 244))
SENDER = MemberId(7)


def told(*keys: Key) -> Claims:
    return Claims(tuple(ClaimState(key, Version(1, SENDER)) for key in keys))


def listed(low: int, high: int) -> Claims:
    inside = [ClaimState(key, Version(1, SENDER)) for key in KEYS if low <= key_hash(key) < high]
    return Claims(tuple(inside), low, high)


HALF = (MASK + 1) // 2
CHANGES = st.sets(st.sampled_from(KEYS), min_size=1).map(lambda keys: told(*sorted(keys)))
LISTS = st.sampled_from([listed(0, MASK + 1), listed(0, HALF), listed(HALF, MASK + 1)])


def hear(arrivals: Sequence[tuple[int, Body]]) -> list[tuple[int, Claims]]:
    """What is believed of each, in the order in which they come in."""
    words: Words = ()
    believed = []
    for seq, body in arrivals:
        newest = words[-1].seq if words else -1
        if seq > newest or may_be_new(words, seq, body):
            news = news_of(words, seq, body) if isinstance(body, Claims) else None
            if news is not None:
                believed.append((seq, news))
            words = note_word(words, seq, body)
    return believed


def speaks_of(claims: Claims, key: Key) -> bool:
    return claims.low <= key_hash(key) < claims.high or key in {entry.key for entry in claims.entries}


@given(st.lists(st.one_of(CHANGES, CHANGES, LISTS), max_size=2 * KEPT), st.randoms(use_true_random=False))
def test_what_is_believed_of_a_key_never_goes_back(bodies: list[Claims], chance: random.Random) -> None:
    arrivals = list(enumerate(bodies))
    chance.shuffle(arrivals)
    believed = hear(arrivals)

    for key in KEYS:
        numbers = [seq for seq, claims in believed if speaks_of(claims, key)]
        assert numbers == sorted(set(numbers))


@given(st.lists(CHANGES, max_size=KEPT), st.randoms(use_true_random=False))
def test_the_last_change_of_each_key_is_heard_in_whatever_order_they_come(
    bodies: list[Claims], chance: random.Random
) -> None:
    arrivals = list(enumerate(bodies))
    chance.shuffle(arrivals)
    believed = hear(arrivals)

    for key in KEYS:
        sent = [seq for seq, claims in enumerate(bodies) if speaks_of(claims, key)]
        assert [seq for seq, claims in believed if speaks_of(claims, key)][-1:] == sent[-1:]


@given(st.lists(CHANGES, max_size=2 * KEPT), st.randoms(use_true_random=False))
def test_a_word_that_is_sent_again_by_somebody_else_is_heard_once(bodies: list[Claims], chance: random.Random) -> None:
    arrivals = [*enumerate(bodies), *enumerate(bodies)]
    chance.shuffle(arrivals)
    numbers = [seq for seq, _claims in hear(arrivals)]

    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize(
    ("newer", "late", "heard"),
    [
        pytest.param(Want(), told(*KEYS[:2]), KEYS[:2], id="what speaks of no key hides none"),
        pytest.param(told(KEYS[1]), told(*KEYS[:2]), KEYS[:1], id="a change hides its keys"),
        pytest.param(told(*KEYS), told(*KEYS[:2]), None, id="and all of them all"),
        pytest.param(listed(0, MASK + 1), told(KEYS[0]), None, id="a list hides what it is complete for"),
        pytest.param(told(KEYS[0]), listed(0, MASK + 1), None, id="a list is heard whole or not at all"),
        pytest.param(listed(0, HALF), listed(HALF, MASK + 1), "all", id="parts of a list come in any order"),
        pytest.param(listed(0, HALF), listed(0, MASK + 1), None, id="not twice for any hash"),
    ],
)
def test_what_is_heard_of_claims_that_were_overtaken(newer: Body, late: Claims, heard: object) -> None:
    news = news_of(note_word((), 2, newer), 1, late)

    if heard == "all":
        assert news == late
    else:
        assert (tuple(entry.key for entry in news.entries) if news is not None else None) == heard


def test_what_may_be_heard_late() -> None:
    words: Words = ()
    for seq in range(10, 10 + KEPT - 1):
        words = note_word(words, seq, Want())

    assert [may_be_new(words, seq, Want()) for seq in (5, 10, 40)] == [True, False, True]
    assert [may_be_new(words, 5, body) for body in (Offer(()), Beat({}), Challenge(1), None)] == [True, *[False] * 3]
    words = note_word(words, 40, Want())
    assert not may_be_new(words, 5, Want()), "nobody knows any more"
    assert may_be_new(words, 12, Want()) is False
    assert may_be_new(words, 39, Want()) is True
    assert note_word(words, 41, Beat({})) == words


# -- In a member --


def peer_of(simulation: Simulation) -> tuple[State, Member]:
    """An owner's view of one that isn't."""
    owner = simulation.owner_of(simulation.keys[0])
    state = simulation.nodes[owner].state
    assert state is not None
    return state, state.members[simulation.nodes[others(simulation, owner)[0]].id]


@pytest.mark.parametrize(
    ("late_s", "epochs"), [(0.0, 1), (DEFAULT.interval_s - 0.01, 1), (DEFAULT.interval_s + 0.01, 0)]
)
def test_a_claim_that_was_overtaken_counts_for_an_interval(late_s: float, epochs: int) -> None:
    simulation = started(0)
    key = simulation.keys[0]
    state, member = peer_of(simulation)
    heard = partial(word_of, member, clock_s=simulation.now)
    known = state.holds[key].known
    taken = Claims((ClaimState(key, Version(known.epoch + 1, member.id)),))
    state = step(state, simulation.now, heard(Want(), ahead=2)).state
    state = step(state, simulation.now + late_s, heard(taken, ahead=1)).state

    assert state.holds[key].known.epoch == known.epoch + epochs


def test_a_claim_that_its_release_overtook_stays_released() -> None:
    simulation = started(0)
    key = simulation.keys[0]
    state, member = peer_of(simulation)
    heard = partial(word_of, member, clock_s=simulation.now)
    version = Version(state.holds[key].known.epoch + 1, member.id)
    state = step(state, simulation.now, heard(Claims((ClaimState(key, version, released=True),)), ahead=2)).state
    state = step(state, simulation.now, heard(Claims((ClaimState(key, version),)), ahead=1)).state

    assert state.holds[key].owner != member.id
    assert state.holds[key].known >= version


def test_a_word_that_was_overtaken_changes_nothing_of_what_its_sender_says_of_itself() -> None:
    simulation = started(0)
    state, member = peer_of(simulation)
    heard = partial(word_of, member, clock_s=simulation.now)
    state = step(state, simulation.now, heard(Want(), ahead=2)).state
    after = step(state, simulation.now, heard(Want(), ahead=1)).state.members[member.id]

    assert after.seqs == state.members[member.id].seqs
    assert [word.seq for word in after.words[-2:]] == [member.seqs[NODE_NETWORK] + 1, member.seqs[NODE_NETWORK] + 2]
