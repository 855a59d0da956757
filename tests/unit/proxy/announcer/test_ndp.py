"""NDP: what frames say of addresses, and the frames that we send."""

import ipaddress

import pytest

from endpointslice.types import IP
from proxy.announcer.ethernet import Drop, EtherType, Frame, pack_frame, parse_frame
from proxy.announcer.ipv6 import pack_icmpv6
from proxy.announcer.ndp import (
    Neighbour,
    Type,
    announce_ndp,
    answer_ndp,
    ask_ndp,
    parse_ndp,
    read_ndp,
    solicited_node,
    tell_ndp,
)
from proxy.announcer.sightings import Sighting
from proxy.l2.events import ArpKind

VIP, CLIENT = IP("2001:db8::ab:cdef"), IP("2001:db8::77")
VIP_BYTES, CLIENT_BYTES = ipaddress.IPv6Address(VIP).packed, ipaddress.IPv6Address(CLIENT).packed
NOBODY, ALL_NODES = bytes(16), ipaddress.IPv6Address("ff02::1").packed
GROUP = ipaddress.IPv6Address("ff02::1:ffab:cdef").packed
OURS, THEIRS = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
SOURCE_OPTION = b"\1\1" + THEIRS


def seen(data: bytes) -> Neighbour | Drop:
    frame = parse_frame(data)
    assert isinstance(frame, Frame)
    return parse_ndp(frame)


def question(*, source: bytes = CLIENT_BYTES, destination: bytes = GROUP, options: bytes = b"") -> bytes:
    body = bytes((135, 0, 0, 0)) + bytes(4) + VIP_BYTES + options
    return pack_frame(b"\x33\x33\xff\xab\xcd\xef", THEIRS, EtherType.IPV6, pack_icmpv6(source, destination, body))


def test_a_multicast_question_asks_and_says_who_asks() -> None:
    message = seen(question(options=SOURCE_OPTION))

    assert isinstance(message, Neighbour)
    assert read_ndp(message) == (
        Sighting(ArpKind.GRATUITOUS, CLIENT, THEIRS, broadcast=True),
        Sighting(ArpKind.REQUEST, VIP, THEIRS, broadcast=True, asker=CLIENT),
    )


def test_a_reachability_probe_without_an_option_is_a_question_to_us_alone() -> None:
    message = seen(question(destination=VIP_BYTES))

    assert isinstance(message, Neighbour)
    assert read_ndp(message)[-1] == Sighting(ArpKind.REQUEST, VIP, THEIRS, broadcast=False, asker=CLIENT)


def test_an_answer_is_solicited_overrides_and_goes_to_the_asker() -> None:
    asked = seen(question(options=SOURCE_OPTION))
    assert isinstance(asked, Neighbour)

    data = answer_ndp(asked, OURS)

    assert data[:12] == THEIRS + OURS
    assert seen(data) == Neighbour(
        Type.ADVERTISEMENT, VIP_BYTES, CLIENT_BYTES, VIP_BYTES, OURS, solicited=True, override=True
    )


def test_who_wants_the_address_for_itself_is_told_together_with_everybody() -> None:
    asked = seen(question(source=NOBODY))
    assert isinstance(asked, Neighbour)
    assert read_ndp(asked) == (Sighting(ArpKind.REQUEST, VIP, THEIRS, broadcast=True),)

    data = answer_ndp(asked, OURS)

    assert data[:6] == b"\x33\x33\0\0\0\1"
    assert seen(data) == Neighbour(Type.ADVERTISEMENT, VIP_BYTES, ALL_NODES, VIP_BYTES, OURS, override=True)


def test_an_announcement_is_unsolicited_and_overrides() -> None:
    told = seen(announce_ndp(VIP, OURS))

    assert told == Neighbour(Type.ADVERTISEMENT, VIP_BYTES, ALL_NODES, VIP_BYTES, OURS, override=True)
    assert read_ndp(told) == (Sighting(ArpKind.GRATUITOUS, VIP, OURS, broadcast=True),)


def test_a_look_goes_to_one_host_and_a_probe_to_the_solicited_node_group() -> None:
    look, probe = ask_ndp(VIP, OURS, own=CLIENT, to=THEIRS), ask_ndp(VIP, OURS, own=CLIENT)

    assert (look[:6], seen(look)) == (THEIRS, Neighbour(Type.SOLICITATION, CLIENT_BYTES, VIP_BYTES, VIP_BYTES, OURS))
    assert probe[:6] == b"\x33\x33\xff\xab\xcd\xef"
    assert seen(probe) == Neighbour(Type.SOLICITATION, CLIENT_BYTES, GROUP, VIP_BYTES, OURS)


def test_the_solicited_node_group_ends_as_the_address() -> None:
    assert solicited_node(VIP_BYTES) == GROUP


def changed(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + bytes((value,)) + data[at + 1 :]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(question()[:50], Drop.SHORT, id="cut"),
        pytest.param(changed(question(), 14 + 7, 64), Drop.HOP_LIMIT, id="through a router"),
        pytest.param(changed(question(), 14 + 45, 1), Drop.CHECKSUM, id="a bit fell over"),
        pytest.param(changed(question(), 14 + 6, 17), Drop.NOT_OURS, id="UDP"),
        pytest.param(question(options=b"\1\0" + THEIRS), Drop.BAD_OPTION, id="an option of no length"),
        pytest.param(question(options=b"\1\2" + THEIRS), Drop.BAD_OPTION, id="an option beyond the end"),
        pytest.param(question(options=b"\1\1" + b"\xff" * 6), Drop.BAD_SENDER, id="a group's MAC"),
        pytest.param(question(source=ALL_NODES), Drop.BAD_SENDER, id="a group asks"),
    ],
)
def test_what_is_dropped(data: bytes, why: Drop) -> None:
    assert seen(data) is why


def test_padding_after_a_short_packet_is_no_part_of_it() -> None:
    assert isinstance(seen(question() + bytes(10)), Neighbour)


def test_unknown_options_are_skipped() -> None:
    nonce = b"\x0e\1" + b"random"

    message = seen(question(options=nonce + SOURCE_OPTION))

    assert isinstance(message, Neighbour)
    assert message.mac == THEIRS


def test_one_client_is_told_by_an_advertisement_that_goes_to_nobody_else() -> None:
    frame = parse_frame(tell_ndp(VIP, OURS, client=CLIENT, to=THEIRS))
    assert isinstance(frame, Frame)
    told = parse_ndp(frame)
    assert isinstance(told, Neighbour)

    assert (frame.destination, told.override, told.solicited) == (THEIRS, True, False)
    assert read_ndp(told) == (Sighting(ArpKind.REPLY, VIP, OURS, broadcast=False),)
