"""What holds for any events in any order, and for recordings."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from endpointslice.types import IP, NodeName
from proxy.announcer.hand_over import parse_state, render_state
from proxy.l2.actions import Note, Report
from proxy.l2.candidates import Candidate, Table, Vip, Why
from proxy.l2.election import Heirs
from proxy.l2.events import (
    ArpKind,
    ArpSeen,
    DrainAsked,
    DrainEnded,
    EchoReply,
    Event,
    LinkChanged,
    MemberDeleted,
    MoveAsked,
    ProxyGone,
    Received,
    RestartAsked,
    StopAsked,
    TableChanged,
    TableFresh,
    Tick,
    WireActive,
)
from proxy.l2.machine import step
from proxy.l2.messages import (
    Answer,
    Beat,
    Body,
    Bye,
    Challenge,
    Claims,
    ClaimState,
    Flags,
    Header,
    Message,
    Offer,
    Release,
    Want,
)
from proxy.l2.state import Member, Start, State, start
from proxy.l2.types import MASK, NOBODY, NODE_NETWORK, Channel, Key, MemberId, Settings, Version, member_id
from tests.l2.checks import check_step
from tests.l2.lan import WIRE
from tests.l2.simulation import Simulation, World

NAMES = [NodeName(name) for name in ("n1", "n2", "n3")]
ME = member_id(NAMES[0])
MEMBERS = st.sampled_from([*(member_id(name) for name in NAMES), MemberId(7)])
KEYS = st.sampled_from([Key(IP("192.0.2.1"), WIRE), Key(IP("192.0.2.2"), WIRE), Key(IP("192.0.2.1"), Channel("other"))])
AGES = st.floats(0, 10)
CHANNELS = st.sampled_from([WIRE, NODE_NETWORK, Channel("other")])
CLAIMS = st.builds(
    ClaimState,
    KEYS,
    st.builds(Version, st.integers(0, 9), MEMBERS),
    st.builds(Heirs, MEMBERS, MEMBERS),
    st.booleans(),
    st.booleans(),
)
BODIES: st.SearchStrategy[Body | None] = st.one_of(
    st.none(),
    st.builds(
        Beat, st.dictionaries(MEMBERS, AGES), st.sampled_from(["", "mac-a"]), st.integers(1, 4), st.just(frozenset())
    ),
    st.builds(Claims, st.tuples(CLAIMS), st.just(0), st.sampled_from([0, MASK + 1])),
    st.builds(Want),
    st.builds(Offer, st.tuples(st.tuples(KEYS, st.integers(0, 9))), st.booleans(), AGES),
    st.builds(Release, CHANNELS),
    st.builds(Challenge, st.integers(0, 3)),
    st.builds(Answer, st.integers(0, 3), st.sampled_from(NAMES)),
    st.builds(Bye),
)
HEADERS = st.builds(Header, MEMBERS, st.integers(0, 2), st.integers(0, 50), AGES, st.sampled_from(list(Flags)), AGES)
TABLES = st.builds(
    lambda whys: Table(
        {
            Key(IP(f"192.0.2.{number}"), WIRE): Vip(
                Key(IP(f"192.0.2.{number}"), WIRE), Candidate(NAMES[0], why), (Candidate(NAMES[1]),), local=number == 1
            )
            for number, why in enumerate(whys)
        }
    ),
    st.lists(st.sampled_from([Why.ELIGIBLE, Why.NO_LOCAL_ENDPOINT, Why.CORDONED]), max_size=3),
)
VIPS = st.sampled_from([IP("192.0.2.1"), IP("192.0.2.2"), IP("192.0.2.9")])
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.just(Tick()),
    st.builds(Received, CHANNELS, st.builds(Message, HEADERS, BODIES, st.sampled_from([NOBODY, ME, MemberId(7)]))),
    st.builds(ArpSeen, CHANNELS, st.sampled_from(ArpKind), VIPS, st.sampled_from(["mac-a", "mac-b"]), st.booleans()),
    st.builds(WireActive, CHANNELS),
    st.builds(EchoReply, CHANNELS, st.one_of(st.none(), VIPS)),
    st.builds(
        LinkChanged,
        CHANNELS,
        st.just("mac-1"),
        st.booleans(),
        st.sampled_from([None, IP("192.0.2.254")]),
        st.booleans(),
    ),
    st.builds(TableChanged, TABLES, AGES),
    st.builds(TableFresh, AGES),
    st.builds(MoveAsked, KEYS, MEMBERS),
    st.builds(MemberDeleted, MEMBERS),
    st.sampled_from([ProxyGone(), DrainAsked(), DrainEnded(), RestartAsked(), StopAsked()]),
)
HOUR_S, DAY_S = 3601.0, 90000.0
STEPS = st.lists(st.tuples(st.sampled_from([-3.0, 0.0, 0.01, 0.05, 0.2, 1.0, 5.0, HOUR_S, DAY_S]), EVENTS), max_size=40)


def fresh() -> State:
    state = start(Settings(NAMES[0]), Start(1, b"secret"), 100.0)
    state, _actions = step(state, 100.0, LinkChanged(WIRE, "mac-1", gateway=IP("192.0.2.254")))
    key = Key(IP("192.0.2.1"), WIRE)
    vip = Vip(key, Candidate(NAMES[0]), (Candidate(NAMES[1]),))
    state = step(state, 100.0, TableChanged(Table({key: vip}))).state
    known = {member_id(name): Member(member_id(name), name, session=1, since_s=0.0) for name in NAMES[1:]}
    return replace(state, members=known)


@given(STEPS)
def test_any_events_in_any_order_with_clocks_that_go_back_keep_the_invariants(steps: list[tuple[float, Event]]) -> None:
    state, now = fresh(), 100.0
    for passed_s, event in steps:
        now += passed_s
        before = state
        state, actions = step(state, now, event)
        check_step("n1", before, event, state, actions)


@given(STEPS)
def test_a_step_leaves_the_state_before_whole_and_gives_the_same_again(steps: list[tuple[float, Event]]) -> None:
    state, now = fresh(), 100.0
    for passed_s, event in steps:
        now += passed_s
        first, second = step(state, now, event), step(state, now, event)
        assert first == second
        state = first.state


@given(STEPS)
def test_who_still_has_something_to_read_takes_nothing(steps: list[tuple[float, Event]]) -> None:
    state, now = fresh(), 100.0
    for passed_s, event in steps:
        now += passed_s
        owned = state.mine
        state, actions = step(state, now, event, more=True)
        if not isinstance(event, Received):
            assert not [
                one for one in actions if isinstance(one, Report) and one.note in {Note.TAKEN, Note.LAST_RESORT}
            ]
            assert state.mine <= owned


def test_a_recording_played_again_gives_the_same_actions() -> None:
    simulation = Simulation(World(seed=2))
    node = simulation.nodes["n1"]
    simulation.boot_all(settle_s=0.6)
    node.trace, state = [], node.state
    simulation.run(5)
    simulation.kill("n2")
    simulation.run(5)

    assert state is not None
    assert len(node.trace) > 200
    for now, event, more, actions in node.trace:
        state, again = step(state, now, event, more=more)
        assert again == actions


@given(STEPS)
def test_a_state_survives_its_way_to_the_next_process_whatever_it_heard(steps: list[tuple[float, Event]]) -> None:
    state, now = fresh(), 100.0
    for passed_s, event in steps:
        now += passed_s
        state = step(state, now, event).state

    assert parse_state(render_state(state), NAMES[0]) == state
