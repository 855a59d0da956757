"""ARP: what frames say of addresses, and the frames that we send."""

import pytest

from endpointslice.types import IP
from proxy.announcer.arp import (
    Arp,
    Operation,
    announce_arp,
    answer_arp,
    ask_arp,
    pack_arp,
    parse_arp,
    read_arp,
    tell_arp,
)
from proxy.announcer.ethernet import BROADCAST, NO_MAC, Drop, EtherType, Frame, parse_frame
from proxy.announcer.sightings import Sighting
from proxy.l2.events import ArpKind

VIP, CLIENT = IP("192.0.2.10"), IP("192.0.2.77")
VIP_BYTES, CLIENT_BYTES, NO_IP = bytes((192, 0, 2, 10)), bytes((192, 0, 2, 77)), bytes(4)
OURS, THEIRS = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")


def seen(data: bytes) -> Arp | Drop:
    frame = parse_frame(data)
    assert isinstance(frame, Frame)
    return parse_arp(frame)


@pytest.mark.parametrize(
    ("packet", "broadcast", "said"),
    [
        pytest.param(
            Arp(Operation.REQUEST, THEIRS, CLIENT_BYTES, NO_MAC, VIP_BYTES),
            True,
            [
                Sighting(ArpKind.GRATUITOUS, CLIENT, THEIRS, broadcast=True),
                Sighting(ArpKind.REQUEST, VIP, THEIRS, broadcast=True, asker=CLIENT),
            ],
            id="a question also tells everybody who asks",
        ),
        pytest.param(
            Arp(Operation.REQUEST, THEIRS, CLIENT_BYTES, NO_MAC, VIP_BYTES),
            False,
            [
                Sighting(ArpKind.REPLY, CLIENT, THEIRS, broadcast=False),
                Sighting(ArpKind.REQUEST, VIP, THEIRS, broadcast=False, asker=CLIENT),
            ],
            id="a question to one host tells nobody else",
        ),
        pytest.param(
            Arp(Operation.REQUEST, THEIRS, NO_IP, NO_MAC, VIP_BYTES),
            True,
            [Sighting(ArpKind.REQUEST, VIP, THEIRS, broadcast=True)],
            id="a probe only asks",
        ),
        pytest.param(
            Arp(Operation.REQUEST, THEIRS, VIP_BYTES, NO_MAC, VIP_BYTES),
            True,
            [Sighting(ArpKind.GRATUITOUS, VIP, THEIRS, broadcast=True)],
            id="the gratuitous request asks nothing",
        ),
        pytest.param(
            Arp(Operation.REPLY, THEIRS, VIP_BYTES, THEIRS, VIP_BYTES),
            True,
            [Sighting(ArpKind.GRATUITOUS, VIP, THEIRS, broadcast=True)],
            id="the gratuitous reply",
        ),
        pytest.param(
            Arp(Operation.REPLY, THEIRS, VIP_BYTES, OURS, CLIENT_BYTES),
            False,
            [Sighting(ArpKind.REPLY, VIP, THEIRS, broadcast=False)],
            id="an answer",
        ),
    ],
)
def test_what_a_packet_says(packet: Arp, broadcast: bool, said: list[Sighting]) -> None:  # noqa: FBT001
    assert list(read_arp(packet, broadcast=broadcast)) == said


def test_an_answer_goes_to_the_asker_alone_and_gives_our_mac() -> None:
    request = Arp(Operation.REQUEST, THEIRS, CLIENT_BYTES, NO_MAC, VIP_BYTES)

    data = answer_arp(request, OURS)

    assert parse_frame(data) == Frame(THEIRS, OURS, EtherType.ARP, data[14:])
    assert seen(data) == Arp(Operation.REPLY, OURS, VIP_BYTES, THEIRS, CLIENT_BYTES)


def test_the_first_round_has_the_request_form_only() -> None:
    (request,) = announce_arp(VIP, OURS, both=False)

    assert request[:6] == BROADCAST
    assert seen(request) == Arp(Operation.REQUEST, OURS, VIP_BYTES, NO_MAC, VIP_BYTES)


def test_the_gratuitous_reply_names_its_sender_as_target() -> None:
    _request, reply = announce_arp(VIP, OURS, both=True)

    assert seen(reply) == Arp(Operation.REPLY, OURS, VIP_BYTES, OURS, VIP_BYTES)


def test_a_probe_has_no_sender_address_and_a_look_goes_to_one_host() -> None:
    probe, look = ask_arp(VIP, OURS, own=None), ask_arp(VIP, OURS, own=CLIENT, to=THEIRS)

    assert (probe[:6], seen(probe)) == (BROADCAST, Arp(Operation.REQUEST, OURS, NO_IP, NO_MAC, VIP_BYTES))
    assert (look[:6], seen(look)) == (THEIRS, Arp(Operation.REQUEST, OURS, CLIENT_BYTES, NO_MAC, VIP_BYTES))


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        pytest.param(b"", Drop.SHORT, id="nothing"),
        pytest.param(pack_arp(Arp(Operation.REQUEST, THEIRS, NO_IP, NO_MAC, VIP_BYTES))[:27], Drop.SHORT, id="cut"),
        pytest.param(bytes(28), Drop.NOT_ETHERNET_IPV4, id="zeros"),
        pytest.param(
            bytes.fromhex("0001080006040003") + THEIRS + bytes(14), Drop.BAD_OPERATION, id="reverse ARP's question"
        ),
        pytest.param(
            pack_arp(Arp(Operation.REPLY, BROADCAST, VIP_BYTES, OURS, VIP_BYTES)), Drop.BAD_SENDER, id="a group's MAC"
        ),
        pytest.param(
            pack_arp(Arp(Operation.REPLY, NO_MAC, VIP_BYTES, OURS, VIP_BYTES)), Drop.BAD_SENDER, id="no MAC at all"
        ),
    ],
)
def test_what_is_dropped(payload: bytes, why: Drop) -> None:
    assert parse_arp(Frame(BROADCAST, THEIRS, EtherType.ARP, payload)) is why


def test_one_client_is_told_by_a_question_for_it_that_goes_to_nobody_else() -> None:
    frame = parse_frame(tell_arp(VIP, OURS, client=CLIENT, to=THEIRS))
    assert isinstance(frame, Frame)
    packet = parse_arp(frame)
    assert isinstance(packet, Arp)

    assert (frame.destination, frame.source) == (THEIRS, OURS)
    assert Sighting(ArpKind.REPLY, VIP, OURS, broadcast=False) in read_arp(packet, broadcast=False)
    assert Sighting(ArpKind.REQUEST, CLIENT, OURS, broadcast=False, asker=VIP) in read_arp(packet, broadcast=False)
