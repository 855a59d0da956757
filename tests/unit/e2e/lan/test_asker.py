"""The cold client's frames."""

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.lan.asker import build_question, parse_claim, sum_of

MAC = bytes.fromhex("0200000000d0")
OWNER = bytes.fromhex("02000000000b")
VIP4, VIP6 = "172.31.0.100", "fd00:172:31::64"
VIPS = (socket.inet_aton(VIP4), socket.inet_pton(socket.AF_INET6, VIP6))


def arp(operation: int, source: str, target: str) -> bytes:
    addresses = (socket.inet_aton(source), bytes(6), socket.inet_aton(target))
    return MAC + OWNER + struct.pack("!HHHBBH6s4s6s4s", 0x0806, 1, 0x0800, 6, 4, operation, OWNER, *addresses)


def advertisement(target: str, destination: str) -> bytes:
    message = struct.pack("!BBHI16sBB6s", 136, 0, 0, 3 << 29, socket.inet_pton(socket.AF_INET6, target), 2, 1, OWNER)
    addresses = (bytes(16), socket.inet_pton(socket.AF_INET6, destination))
    return MAC + OWNER + struct.pack("!HIHBB16s16s", 0x86DD, 6 << 28, len(message), 58, 255, *addresses) + message


@pytest.mark.parametrize(
    ("frame", "vip", "claim"),
    [
        pytest.param(arp(2, VIP4, "172.31.0.208"), VIP4, "172.31.0.208", id="an answer"),
        pytest.param(arp(1, VIP4, VIP4), VIP4, VIP4, id="a gratuitous request"),
        pytest.param(arp(1, "172.31.0.11", VIP4), VIP4, None, id="somebody else's question"),
        pytest.param(arp(2, "172.31.0.11", "172.31.0.208"), VIP4, None, id="another address"),
        pytest.param(advertisement(VIP6, "fd00:172:31::d0"), VIP6, "fd00:172:31::d0", id="an advertisement"),
        pytest.param(advertisement(VIP6, "ff02::1"), VIP6, "ff02::1", id="an unsolicited one"),
        pytest.param(advertisement("fd00::1", "ff02::1"), VIP6, None, id="of another address"),
        pytest.param(build_question(MAC, "fd00:172:31::d0", VIP6), VIP6, None, id="our own solicitation"),
    ],
)
def test_who_says_that_the_vip_is_theirs(frame: bytes, vip: str, claim: str | None) -> None:
    family = socket.AF_INET6 if ":" in vip else socket.AF_INET

    found = parse_claim(frame, socket.inet_pton(family, vip))

    assert found == (None if claim is None else (OWNER.hex(":"), ipv(claim)))


def ipv(address: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


@given(st.binary(max_size=100), st.sampled_from([b"\x08\x06", b"\x86\xdd"]))
def test_no_frame_is_too_strange(body: bytes, kind: bytes) -> None:
    for frame in (body, bytes(12) + kind + body):
        for vip in VIPS:
            parse_claim(frame, vip)


def test_an_arp_question_is_a_broadcast_request() -> None:
    frame = build_question(MAC, "172.31.0.208", VIP4)

    assert frame[:14] == b"\xff" * 6 + MAC + b"\x08\x06"
    assert frame[14:].hex() == "0001080006040001" + MAC.hex() + "ac1f00d0" + "00" * 6 + "ac1f0064"


def test_a_solicitation_goes_to_the_vips_group_with_a_right_checksum() -> None:
    frame = build_question(MAC, "fd00:172:31::d0", VIP6)
    head, message = frame[14:54], frame[54:]

    assert frame[:6].hex(":") == "33:33:ff:00:00:64"
    assert head[24:] == socket.inet_pton(socket.AF_INET6, "ff02::1:ff00:64")
    assert sum_of(head[8:] + struct.pack("!II", len(message), 58) + message) == 0
