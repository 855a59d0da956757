"""Others' clocks tell of our own that stood, and of nothing else: no late word, and no stop of theirs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from endpointslice.types import NodeName
from proxy.l2.actions import Action, Note, Report
from proxy.l2.clocks import RECENT_S, Clock, note_clock
from proxy.l2.events import Received
from proxy.l2.machine import step
from proxy.l2.messages import Beat, Header, Message, Want
from proxy.l2.state import NOTHING, State
from proxy.l2.types import NODE_NETWORK, member_id
from tests.l2.stories import settled

ME, PEER = member_id(NodeName("n1")), member_id(NodeName("n2"))
AHEAD_S = 1234.5


def hear(words: list[tuple[float, float]], known: Clock | None = None) -> tuple[Clock | None, list[float]]:
    """The clock after words of (when it came, by how much it was late), and how long each says that ours stood."""
    said = []
    for came_s, late_s in words:
        clock_s = came_s - late_s + AHEAD_S
        said.append(known.stood_s(clock_s, came_s) if known is not None else 0.0)
        known = note_clock(known, clock_s, came_s)
    return known, said


LATE = st.one_of(st.just(0.0), st.floats(0, 5))
WORDS = st.lists(st.tuples(st.floats(0, RECENT_S), LATE), min_size=1, max_size=40)


@given(WORDS)
def test_after_one_word_in_time_no_late_one_says_that_our_clock_stood(words: list[tuple[float, float]]) -> None:
    came_s = 0.0
    steps = [(0.0, 0.0)]
    for passed_s, late_s in words:
        came_s += passed_s
        steps.append((came_s, late_s if came_s % (2 * RECENT_S) < RECENT_S else 0.0))

    assert max(hear(steps)[1]) < 0.001


@given(st.floats(0.5, 600), st.lists(LATE, max_size=5))
def test_whatever_was_late_before_the_word_after_our_pause_says_how_long_it_was(
    pause_s: float, late: list[float]
) -> None:
    known, _said = hear([(0.0, 0.0), *((number * 0.2, late_s) for number, late_s in enumerate(late, 1))])
    assert known is not None

    assert known.stood_s(10.0 + pause_s + AHEAD_S, 10.0) == pytest.approx(pause_s)


def test_a_member_whose_own_clock_stood_is_believed_again_after_a_minute() -> None:
    known, _said = hear([(0.0, 0.0)])
    stood = [(number * 0.2, 5.0) for number in range(1, 400)]
    known, said = hear(stood, known)
    assert known is not None

    assert max(said) <= 0
    assert known.stood_s(100.0 - 5.0 + 2.0 + AHEAD_S, 100.0) == pytest.approx(2.0)


def say(state: State, now: float, *, late_s: float = 0.0, beat: bool = True) -> tuple[State, tuple[Action, ...]]:
    """A peer's word on the node network, so late."""
    peer = state.members[PEER]
    assert peer.clock is not None
    tally = state.tallies.get(PEER, NOTHING)
    header = Header(
        PEER,
        peer.session or 0,
        max(peer.seqs.values()) + 1,
        now - late_s + peer.clock.ahead_s,
        digest=tally.digest,
        count=tally.size,
    )
    body = Beat({ME: 0.1}, "", 3) if beat else Want()
    return step(state, now, Received(NODE_NETWORK, Message(header, body)), more=True)


def notes(actions: tuple[Action, ...]) -> set[Note]:
    return {action.note for action in actions if isinstance(action, Report)}


@pytest.mark.parametrize("beat", [True, False], ids=["a heartbeat", "another word"])
def test_a_datagram_that_waited_for_a_mac_and_the_next_in_time_silence_nobody(beat: bool) -> None:  # noqa: FBT001  # a table's
    state = settled()
    now = state.last_step_s + 0.01
    state, first = say(state, now, late_s=2.0, beat=beat)
    state, second = say(state, now + 0.1)

    assert Note.CLOCK_STOOD not in notes(first) | notes(second)
    assert not any(wire.listening for wire in state.wires.values())


def test_a_heartbeat_that_is_ahead_of_all_before_makes_this_node_listen_first() -> None:
    state = settled()
    state = replace(state, wires={name: replace(wire, listening=False) for name, wire in state.wires.items()})
    state, actions = say(state, state.last_step_s + 0.01, late_s=-2.0)

    assert Note.CLOCK_STOOD in notes(actions)
    assert all(wire.listening for wire in state.wires.values())
