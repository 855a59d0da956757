"""Echo to a gateway: what we ask, and what counts as an answer."""

import pytest

from endpointslice.types import IP
from proxy.announcer.echo import Echo, Macs, pack_request, parse_reply
from proxy.announcer.ethernet import Drop, EtherType, Frame, pack_frame, parse_frame
from proxy.announcer.ipv6 import checksum

OURS, GATEWAY_MAC = bytes.fromhex("020000000001"), bytes.fromhex("020000000009")
V4 = Echo(IP("192.0.2.10"), IP("192.0.2.1"), 7, 3)
V6 = Echo(IP("2001:db8::10"), IP("fe80::1"), 7, 3)


def parsed(data: bytes) -> Frame:
    frame = parse_frame(data)
    assert isinstance(frame, Frame)
    return frame


def reply_v4(*, kind: int = 0, fragment: int = 0, options: bytes = b"") -> bytes:
    """As the gateway would answer V4."""
    body = bytes((kind, 0, 0, 0)) + bytes((0, 7, 0, 3)) + b"payload"
    body = body[:2] + checksum(body).to_bytes(2, "big") + body[4:]
    words = 5 + len(options) // 4
    header = bytes((0x40 + words, 0)) + (words * 4 + len(body)).to_bytes(2, "big") + bytes(2)
    header += fragment.to_bytes(2, "big") + bytes((64, 1, 0, 0, 192, 0, 2, 1, 192, 0, 2, 10)) + options
    header = header[:10] + checksum(header).to_bytes(2, "big") + header[12:]
    return pack_frame(OURS, GATEWAY_MAC, EtherType.IPV4, header + body)


@pytest.mark.parametrize("echo", [V4, V6], ids=["IPv4", "IPv6"])
def test_a_request_goes_from_the_address_to_the_gateways_mac_and_is_no_reply(echo: Echo) -> None:
    data = pack_request(echo, Macs(OURS, GATEWAY_MAC))

    assert data[:12] == GATEWAY_MAC + OURS
    assert parse_reply(parsed(data)) is Drop.NOT_OURS


def test_a_request_turned_round_is_its_reply() -> None:
    data = bytearray(pack_request(V6, Macs(OURS, GATEWAY_MAC)))
    data[14 + 8 : 14 + 40] = data[14 + 24 : 14 + 40] + data[14 + 8 : 14 + 24]
    data[14 + 40] = 129
    total = int.from_bytes(data[14 + 42 : 14 + 44], "big") - 0x100
    data[14 + 42 : 14 + 44] = total.to_bytes(2, "big")

    assert parse_reply(parsed(bytes(data))) == Echo(IP("fe80::1"), IP("2001:db8::10"), 7, 3)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        pytest.param(reply_v4(), Echo(IP("192.0.2.1"), IP("192.0.2.10"), 7, 3), id="a reply"),
        pytest.param(reply_v4(options=b"\1\1\1\0"), Echo(IP("192.0.2.1"), IP("192.0.2.10"), 7, 3), id="with options"),
        pytest.param(reply_v4() + bytes(9), Echo(IP("192.0.2.1"), IP("192.0.2.10"), 7, 3), id="padded"),
        pytest.param(reply_v4(kind=8), Drop.NOT_OURS, id="a request"),
        pytest.param(reply_v4(fragment=0x2000), Drop.FRAGMENT, id="the first of several fragments"),
        pytest.param(reply_v4()[:40], Drop.SHORT, id="cut"),
        pytest.param(reply_v4()[:-1] + b"x", Drop.CHECKSUM, id="a bit fell over"),
    ],
)
def test_what_counts_as_a_reply(data: bytes, found: Echo | Drop) -> None:
    assert parse_reply(parsed(data)) == found
