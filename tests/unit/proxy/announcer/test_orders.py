"""What Nodes order an announcer, until it is carried out."""

import pytest
from msgspec.structs import replace

from endpointslice.types import IP, NodeName
from proxy.announcer.around import Around
from proxy.announcer.orders import Order, order_move, read_orders
from proxy.l2.candidates import NodeFacts
from proxy.l2.events import DrainAsked, DrainEnded, MemberDeleted, MoveAsked
from proxy.l2.machine import step
from proxy.l2.state import Member, Start, State, start
from proxy.l2.types import Channel, DrainCause, Key, Settings, member_id

N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")
FRESH = start(Settings(N1), Start(1, b"secret"), 0.0)
BY_HAND, BY_NODE, BY_END = DrainCause.ASKED, DrainCause.ANNOTATION, DrainCause.SHUTDOWN


def drained(*causes: DrainCause) -> State:
    state = FRESH
    for cause in causes:
        state = step(state, 1.0, DrainAsked(cause)).state
    return state


def around(*facts: NodeFacts, whole: bool = True) -> Around:
    return Around({one.node: one for one in facts}, whole=whole)


@pytest.mark.parametrize(
    ("state", "facts", "orders"),
    [
        pytest.param(FRESH, NodeFacts(N1), [], id="nothing"),
        pytest.param(FRESH, NodeFacts(N1, drained=True), [DrainAsked(BY_NODE)], id="its annotation says drain"),
        pytest.param(drained(BY_NODE), NodeFacts(N1, drained=True), [], id="and it does"),
        pytest.param(drained(BY_NODE), NodeFacts(N1), [DrainEnded(BY_NODE)], id="the annotation is gone"),
        pytest.param(FRESH, NodeFacts(N1, shutting_down=True), [DrainAsked(BY_END)], id="the machine shuts down"),
        pytest.param(drained(BY_END), NodeFacts(N1), [DrainEnded(BY_END)], id="and is back"),
        pytest.param(drained(BY_HAND), NodeFacts(N1), [], id="a drain by hand is nobody else's"),
        pytest.param(drained(BY_NODE), NodeFacts(N2), [], id="of our own Node nothing is known"),
    ],
)
def test_a_node_orders_its_own_drain(state: State, facts: NodeFacts, orders: list[Order]) -> None:
    assert list(read_orders(state, around(facts, whole=False))) == orders


def test_a_drain_ends_with_its_last_cause() -> None:
    state = step(drained(BY_HAND, BY_NODE), 2.0, DrainEnded(BY_HAND)).state
    assert state.draining
    assert not step(state, 3.0, DrainEnded(BY_NODE)).state.draining


def test_members_without_a_node_are_forgotten() -> None:
    members = {member_id(node): Member(member_id(node)) for node in (N2, N3)}
    state = replace(FRESH, members=members)

    orders = list(read_orders(state, around(NodeFacts(N1), NodeFacts(N2))))

    assert orders == [MemberDeleted(member_id(N3))]
    for order in orders:
        state = step(state, 0.01, order).state
    assert list(read_orders(state, around(NodeFacts(N1), NodeFacts(N2)))) == []


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(Around(), id="no Nodes are known"),
        pytest.param(around(NodeFacts(N1), whole=False), id="our own alone"),
        pytest.param(around(NodeFacts(N2)), id="all but our own"),
    ],
)
def test_nobody_is_forgotten_where_nodes_are_not_known_for_sure(known: Around) -> None:
    state = replace(FRESH, members={member_id(N3): Member(member_id(N3))})

    assert list(read_orders(state, known)) == []


def test_an_address_is_moved_on_the_wires_on_which_it_is_ours() -> None:
    ours, other = (Key(IP(vip), Channel("192.0.2.0/24")) for vip in ("192.0.2.1", "192.0.2.2"))
    state = replace(FRESH, mine=frozenset({ours}))

    assert list(order_move(state, ours.vip, N2)) == [MoveAsked(ours, member_id(N2))]
    assert list(order_move(state, other.vip, N2)) == []
