"""Letters of two ports: read in the order in which they were sent, the rest counted."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import IP
from proxy.announcer.datagram import Refusal, Signing, pack_datagram
from proxy.announcer.letters import Letter, order_letters
from proxy.l2.messages import Beat, Body, Header, Message, Want
from proxy.l2.types import NODE_NETWORK, Channel, MemberId

WIRE = Channel("192.0.2.0/24")
KEYS = {1: b"a key of the tests, long enough"}


WHOLE, PART = Beat({}, "", 1), Beat({}, "", 1, low=0, high=5)


def letter(seq: int, sender: int = 1, body: Body | None = None, session: int = 1) -> Letter:
    header = Header(MemberId(sender), session, seq=seq, clock_s=0.0)
    data = pack_datagram(Message(header, body or Want()), WIRE, Signing(KEYS, 1))
    assert data is not None
    return Letter(WIRE, IP("192.0.2.1"), data)


def spoil(good: Letter) -> Letter:
    return good._replace(data=good.data[:-1] + bytes((good.data[-1] ^ 1,)))


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(1, 3)), unique=True))
def test_what_one_member_sent_is_read_in_its_order_whatever_port_it_came_to(sent: list[tuple[int, int]]) -> None:
    told, refused = order_letters([letter(*one) for one in sent], KEYS)

    for member in range(1, 4):
        numbers = [one.message.header.seq for one in told if one.message.header.sender == member]
        assert numbers == sorted(seq for seq, sender in sent if sender == member)
    assert not refused


def test_what_is_not_genuine_is_counted_by_its_reason() -> None:
    good = letter(3)
    broken = good._replace(data=good.data[:-1] + b"?")

    told, refused = order_letters([broken, good, good._replace(data=b""), broken], KEYS)

    assert [one.letter for one in told] == [good]
    assert refused == Counter({Refusal.BAD_SIGNATURE: 2, Refusal.SHORT: 1})


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 2), st.integers(1, 2), st.booleans())))
def test_of_a_session_s_heartbeats_the_newest_genuine_one_is_read_whatever_strangers_send(
    sent: list[tuple[int, int, int, bool]],
) -> None:
    """Strangers may send one again, or make one up with any number: it takes the place of no genuine one."""
    genuine = [(seq, sender, session) for seq, sender, session, is_genuine in sent if is_genuine]
    letters = [letter(seq, sender, WHOLE, session) for seq, sender, session, _ in sent]
    letters = [one if sent[at][3] else spoil(one) for at, one in enumerate(letters)]

    told, _refused = order_letters(letters, KEYS)

    headers = [one.message.header for one in told]
    newest = {(sender, session): seq for seq, sender, session in sorted(genuine)}
    assert {(header.sender, header.session): header.seq for header in headers} == newest
    assert len(headers) == len(newest)


def test_heartbeats_in_parts_and_all_other_messages_are_read_each() -> None:
    letters = [letter(1, body=PART), letter(2, body=PART), letter(3), letter(4)]

    told, _refused = order_letters(letters, KEYS)

    assert [one.message.header.seq for one in told] == [1, 2, 3, 4]


def test_heartbeats_of_different_channels_don_t_stand_for_each_other() -> None:
    header = Header(MemberId(1), session=1, seq=1, clock_s=0.0)
    elsewhere = pack_datagram(Message(header, WHOLE), NODE_NETWORK, Signing(KEYS, 1))
    assert elsewhere is not None

    told, _refused = order_letters([letter(2, body=WHOLE), Letter(NODE_NETWORK, IP("192.0.2.1"), elsewhere)], KEYS)

    assert [(one.letter.channel, one.message.header.seq) for one in told] == [(NODE_NETWORK, 1), (WIRE, 2)]
