"""A state goes from one process to the next as it was."""

from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import IP, NodeName
from proxy.announcer.hand_over import continue_state, parse_state, render_state
from proxy.l2.candidates import Candidate, Table, Vip
from proxy.l2.events import LinkChanged, Received, TableChanged, Tick
from proxy.l2.machine import step
from proxy.l2.messages import Answer, Beat, Flags, Header, Message
from proxy.l2.state import Start, State, start
from proxy.l2.types import Channel, Key, Settings, member_id

N1, N2 = NodeName("n1"), NodeName("n2")
WIRE = Channel("192.0.2.0/24")
KEY = Key(IP("192.0.2.10"), WIRE)


def busy_state() -> State:
    """It owns an address, and has heard strangers."""
    state = start(Settings(N1), Start(5, b"secret"), 1.0)
    table = Table({KEY: Vip(KEY, Candidate(N1), (Candidate(N2),))})
    for event in (LinkChanged(WIRE, "02:00:00:00:00:01", gateway=IP("192.0.2.1")), TableChanged(table)):
        state, _actions = step(state, 1.0, event)
    for number in range(300):
        now = 1.0 + number * 0.05
        header = Header(member_id(N2), 9, number, now, Flags.DRAINING | Flags.STALE)
        body = Beat({state.me: 0.1}) if number % 2 else Answer(number, N2)
        state, _actions = step(state, now, Received(WIRE, Message(header, body)))
        state, _actions = step(state, now, Tick())
    return state


def test_a_state_comes_back_as_it_was() -> None:
    state = busy_state()

    assert state.mine == {KEY}
    assert parse_state(render_state(state), N1) == state


def test_another_nodes_state_is_none_of_ours() -> None:
    assert parse_state(render_state(busy_state()), N2) is None


@given(st.binary(max_size=60))
def test_what_cannot_be_read_is_no_state(data: bytes) -> None:
    assert parse_state(data, N1) is None


def test_the_next_process_has_its_own_settings_the_same_session_and_later_numbers() -> None:
    state, settings = busy_state(), Settings(N1, grace_s=7.0)

    following = continue_state(state, settings)

    assert (following.settings, following.session, following.mine) == (settings, state.session, state.mine)
    assert following.seq > state.seq
