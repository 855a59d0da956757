"""To whom the announcer's messages go: to one, or to all on the wire."""

from collections.abc import Iterable

import pytest

from endpointslice.types import IP
from proxy.announcer.outside import Outside
from proxy.announcer.speech import AddressBook, Speech
from proxy.announcer.wires import WireLink
from proxy.l2.actions import Keep, Send
from proxy.l2.messages import Beat, Body, Claims, ClaimState, Header, Message, Offer, Want
from proxy.l2.types import LATER, MASK, NODE_NETWORK, Channel, Key, MemberId, Version

WIRE = Channel("192.0.2.0/24")
PEER, ADDRESS = MemberId(7), IP("192.0.2.7")
KEYS = [Key(IP(f"192.0.2.{number}"), WIRE) for number in range(100, 200)]
ALL, ONE = None, ADDRESS


class Written(Outside):
    """Opens no socket, and writes down who would have got a datagram."""

    def __init__(self) -> None:
        self.links = {WIRE: WireLink(WIRE, "eth0", 2, bytes(6), carrier=True, own=IP("192.0.2.1"))}
        self.to: list[IP | None] = []
        self.beats: list[bool] = []  # of those on the wire

    def send_on_wire(self, link: WireLink, data: bytes, to: IP | None, *, beat: bool) -> bool:
        assert (link.wire, len(data) > 0) == (WIRE, True)
        self.to.append(to)
        self.beats.append(beat)
        return True

    def send_to_nodes(self, data: bytes, to: Iterable[IP], *, beat: bool) -> None:
        assert (beat, len(data) > 0) == (False, True)
        self.to += to


def claims(count: int) -> Claims:
    return Claims(tuple(ClaimState(key, Version(1, PEER)) for key in KEYS[:count]), 0, MASK + 1)


@pytest.mark.parametrize(
    ("channel", "body", "to"),
    [
        pytest.param(WIRE, Want(), [ALL], id="a question for claims, which a kernel without the MAC would keep"),
        pytest.param(WIRE, claims(3), [ALL], id="its answer"),
        pytest.param(WIRE, claims(100), [ONE] * 4, id="a long one, which all would have to read"),
        pytest.param(WIRE, Offer(((KEYS[0], 1),)), [ONE], id="an offer"),
        pytest.param(NODE_NETWORK, Want(), [ONE], id="where there is no multicast"),
    ],
)
def test_a_message_for_one_member_goes_to(channel: Channel, body: Body, to: list[IP | None]) -> None:
    outside, book = Written(), AddressBook()
    book.note(channel, PEER, ADDRESS)
    speech = Speech(outside, book, {1: b"a key of the tests, long enough"}, echo_id=1)
    header = Header(MemberId(1), session=1, seq=1, clock_s=0.0)

    speech.send(Send(channel, Message(header, body, to=PEER)), None)

    assert outside.to == to
    assert not any(outside.beats)


@pytest.mark.parametrize(("late", "to"), [(False, [ALL]), (True, [])])
def test_what_is_kept_is_sent_once_and_in_time_or_never(*, late: bool, to: list[IP | None]) -> None:
    outside = Written()
    speech = Speech(outside, AddressBook(), {1: b"a key of the tests, long enough"}, echo_id=1)
    beat = Message(Header(MemberId(1), session=1, seq=1, clock_s=0.0), Beat({}, "", 1))
    speech.keep(Keep((Send(WIRE, beat),), 5.0))
    assert (speech.kept_s, outside.to) == (5.0, [])

    speech.send_kept(late=late)
    speech.send_kept(late=False)

    assert (speech.kept_s, outside.to) == (LATER, to)
    assert all(outside.beats)
