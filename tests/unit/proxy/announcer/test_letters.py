"""Letters of two ports: read in the order in which they were sent, the rest counted."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import IP
from proxy.announcer.datagram import Refusal, Signing, pack_datagram
from proxy.announcer.letters import Letter, order_letters
from proxy.l2.messages import Header, Message, Want
from proxy.l2.types import Channel, MemberId

WIRE = Channel("192.0.2.0/24")
KEYS = {1: b"a key of the tests, long enough"}


def letter(seq: int, sender: int = 1) -> Letter:
    header = Header(MemberId(sender), session=1, seq=seq, clock_s=0.0)
    data = pack_datagram(Message(header, Want()), WIRE, Signing(KEYS, 1))
    assert data is not None
    return Letter(WIRE, IP("192.0.2.1"), data)


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
