"""Heartbeats that are taken in many at a time: the same as one after another, whatever they say."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from endpointslice.types import NodeName
from proxy.l2.actions import Action, Keep, Send, SetTimer
from proxy.l2.events import DrainAsked, LinkChanged, Received, Tick
from proxy.l2.machine import step
from proxy.l2.messages import Beat, Body, Bye, Flags, Header, Message, Want
from proxy.l2.plain import hear_plain
from proxy.l2.state import NOTHING, Member, State
from proxy.l2.types import DEFAULT, NEVER, NOBODY, NODE_NETWORK, Channel, MemberId, member_id
from tests.l2.lan import WIRE
from tests.l2.simulation import Simulation, World
from tests.l2.stories import settled

ME, N2, N3, STRANGER = member_id(NodeName("n1")), member_id(NodeName("n2")), member_id(NodeName("n3")), MemberId(7)


def mostly(usual: object, *others: object) -> st.SearchStrategy[object]:
    return st.sampled_from([usual] * 8 + list(others))


def clock_of(member: Member) -> float:
    """Its own, as its last word came."""
    assert member.clock is not None
    return member.word_s + member.clock.ahead_s


@st.composite
def beats(draw: st.DrawFn) -> Received:
    """Mostly what such a member would say next."""
    state = settled()
    sender = draw(st.sampled_from([N2, N3, N2, N3, N2, N3, STRANGER, ME]))
    member = state.members.get(sender, state.members[N2])
    channel = draw(mostly(draw(st.sampled_from([WIRE, NODE_NETWORK])), Channel("other")))
    tally = state.tallies.get(sender, NOTHING)
    seq = max(member.seqs.values()) + draw(st.integers(-1, 40))
    header = Header(
        sender,
        draw(mostly(member.session, 5)),  # type: ignore[arg-type]  # of a member that is settled
        seq,
        clock_of(member) + draw(mostly(0.1, 0.0, -3.0, 0.7)),  # type: ignore[operator]  # numbers
        draw(mostly(Flags.NONE, *Flags)),  # type: ignore[arg-type]  # flags
        draw(st.floats(0, 90)),
        draw(mostly(tally.digest, 9)),  # type: ignore[arg-type]  # numbers
        tally.size,
    )
    heard = draw(mostly({ME: 0.1, N3: 0.2}, {N3: 0.1}, {ME: 3.0}, {}))
    wires = frozenset([WIRE]) if channel == NODE_NETWORK else frozenset[Channel]()
    beat = Beat(heard, draw(mostly("mac-n2", "", "mac-x")), draw(st.integers(1, 4)), wires)  # type: ignore[arg-type]  # drawn
    body: Body = draw(mostly(beat, replace(beat, low=0, high=1 << 63), Want(), Bye()))  # type: ignore[assignment]  # drawn
    to = draw(mostly(NOBODY, ME, STRANGER))
    age_s = draw(mostly(0.0, 0.04, 0.15, 3.0))
    return Received(channel, Message(header, body, to), age_s)  # type: ignore[arg-type]  # drawn


@st.composite
def numbered(draw: st.DrawFn) -> list[Received]:
    """In the order in which they are read."""
    found = draw(st.lists(beats(), max_size=12))
    return sorted(found, key=lambda event: event.message.header.seq) if draw(st.booleans()) else found


def one_by_one(state: State, now: float, events: list[Received]) -> tuple[State, list[Action]]:
    said: list[Action] = []
    for event in events:
        state, actions = step(state, now, event, more=True)
        said += actions
    return state, said


def many_at_a_time(state: State, now: float, events: list[Received]) -> tuple[State, list[Action]]:
    said: list[Action] = []
    at = 0
    while at < len(events):
        state, count = hear_plain(state, now, events, at)
        at += count
        if at < len(events):
            state, actions = step(state, now, events[at], more=True)
            said += actions
            at += 1
    return state, said


PASSED = st.sampled_from([-1.0, 0.0, 0.01, 0.05, 0.1, 0.17, 0.19, 0.5, 2.0])
BETWEEN = st.sampled_from([None, Tick(), LinkChanged(WIRE, "mac-n1", carrier=False), LinkChanged(WIRE, "mac-n1")])


@given(st.lists(st.tuples(PASSED, numbered(), BETWEEN), max_size=6))
def test_heartbeats_taken_in_together_leave_the_same_state_and_say_the_same_as_one_by_one(
    turns: list[tuple[float, list[Received], Tick | LinkChanged | None]],
) -> None:
    first = second = settled()
    now = first.last_step_s
    for passed_s, events, between in turns:
        now += passed_s
        first, said = one_by_one(first, now, events)
        second, again = many_at_a_time(second, now, events)
        assert again == said
        assert second == first
        if between is not None:
            first, second = step(first, now, between).state, step(second, now, between).state


def next_beats(count: int) -> list[Received]:
    state = settled()
    found = []
    for number in range(count):
        for channel in (NODE_NETWORK, WIRE):
            for sender in (N2, N3):
                member = state.members[sender]
                tally = state.tallies.get(sender, NOTHING)
                header = Header(
                    sender,
                    member.session or 0,
                    max(member.seqs.values()) + 1 + number,
                    clock_of(member) + 0.1,
                    digest=tally.digest,
                    count=tally.size,
                )
                found.append(Received(channel, Message(header, Beat({ME: 0.1}, "mac", 3))))
    return found


def test_all_of_what_is_heard_while_nothing_happens_is_plain() -> None:
    state, events = settled(), next_beats(3)

    heard = hear_plain(state, state.last_step_s + 0.1, events)

    assert heard.taken == len(events)
    assert heard.state.members[N2].path(WIRE).heard_s == state.last_step_s + 0.1
    assert heard.state.last_step_s == state.last_step_s + 0.1
    assert heard.state.due_s == state.due_s


def test_who_stood_still_leaves_all_of_it_to_the_guard() -> None:
    state = settled()

    assert hear_plain(state, state.due_s + 0.129, next_beats(1)).taken == 4
    assert hear_plain(state, state.due_s + 0.131, next_beats(1)).taken == 0


def test_one_that_is_sent_again_ends_what_is_taken_in_together() -> None:
    state, (event, *_rest) = settled(), next_beats(1)

    assert hear_plain(state, state.last_step_s, [event, event]).taken == 1


def test_silence_counts_from_when_a_heartbeat_came_in_and_not_from_when_it_was_read() -> None:
    state, (event, *_rest) = settled(), next_beats(1)
    now = state.last_step_s + 0.15
    late = replace(event, age_s=0.1)
    sender = event.message.header.sender

    for heard in (hear_plain(state, now, [late]).state, step(state, now, late, more=True).state):
        assert heard.members[sender].path(event.channel).heard_s == now - 0.1


def crowd() -> State:
    simulation = Simulation(World(seed=2, timing=replace(DEFAULT, crowd=1)))
    simulation.boot_all(settle_s=80)  # nobody is in doubt any more, and nothing is announced
    state = simulation.nodes["n1"].state
    assert state is not None
    return state


def test_among_many_members_each_second_heartbeat_on_the_wire_is_written_with_the_one_before() -> None:
    before = crowd()

    after, actions = step(before, before.due_s, Tick())

    node_beat, beat, kept, timer = actions
    assert isinstance(node_beat, Send)
    assert isinstance(beat, Send)
    assert isinstance(kept, Keep)
    assert [node_beat.channel, beat.channel, kept.sends[0].channel] == [NODE_NETWORK, WIRE, WIRE]
    assert kept.sends[0].message.header.clock_s == kept.at_s == after.kept_s
    assert before.due_s < kept.at_s < after.due_s <= before.due_s + 2 * DEFAULT.interval_s
    assert timer == SetTimer(after.due_s)


def test_what_is_kept_is_never_sent_once_it_would_be_wrong() -> None:
    state, _actions = step(before := crowd(), before.due_s, Tick())

    drained, actions = step(state, state.last_step_s + 0.01, DrainAsked())

    assert Keep((), NEVER) in actions
    assert drained.due_s == drained.last_step_s  # the next one is written at once


def test_where_one_of_many_is_heard_on_the_node_network_alone_all_is_looked_at_as_often_as_among_few() -> None:
    simulation = Simulation(World(seed=2, nodes=5, timing=replace(DEFAULT, crowd=1), separate=True))
    simulation.boot_all(settle_s=80)
    sent = []
    for only_messages in (False, True):
        if only_messages:
            simulation.lan.deaf |= {(name, other, WIRE) for name in ("n2",) for other in simulation.nodes}
            simulation.run(3)
        before = dict(simulation.nodes["n1"].sent)
        simulation.run(10)
        sent.append(simulation.nodes["n1"].sent["Beat"] - before["Beat"])

    assert sent[0] * 1.25 < sent[1]  # on the wire as before, on the node network twice as many
