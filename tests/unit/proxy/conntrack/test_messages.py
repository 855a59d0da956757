"""ctnetlink's messages, as Linux 6.18 writes them."""

import pytest

from endpointslice.types import IP, Family
from proxy.conntrack.flows import Judgement, pack_socket
from proxy.conntrack.messages import FEW, Dump, pack_deletes, pack_dump, plan_dumps, scan_flows

# 127.0.0.1:41238 -> 127.9.9.9:53, translated to 127.0.0.5:5353; captured.
TRANSLATED = bytes.fromhex(
    "a4000000 00012200 01000000 9c6a0000 02000000 34000180 14000180 08000100 7f000001 08000200 7f090909 1c000280"
    "05000100 11000000 06000200 a1160000 06000300 00350000 34000280 14000180 08000100 7f000005 08000200 7f000001"
    "1c000280 05000100 11000000 06000200 14e90000 06000300 a1160000 08000300 000001a8 08000800 00000000"
    "08000c00 790b80ac 08000b00 00000001 08000700 0000001d"
)
# [::1]:46638 -> [::1]:53, translated to [::1]:5353; captured.
TRANSLATED_6 = bytes.fromhex(
    "d4000000 00012200 01000000 b15a0000 0a000000 4c000180 2c000180 14000300 00000000 00000000 00000000 00000001"
    "14000400 00000000 00000000 00000000 00000001 1c000280 05000100 11000000 06000200 b54e0000 06000300 00350000"
    "4c000280 2c000180 14000300 00000000 00000000 00000000 00000001 14000400 00000000 00000000 00000000 00000001"
    "1c000280 05000100 11000000 06000200 14e90000 06000300 b54e0000 08000300 000001a8 08000800 00000000"
    "08000c00 bb31151b 08000b00 00000001 08000700 0000001d"
)
# 127.0.0.1:36894 -> 127.9.9.9:80, which nobody has answered or translated; captured, but for what follows the status.
STUCK = bytes.fromhex(
    "a4000000 00012200 01000000 9c6a0000 02000000 34000180 14000180 08000100 7f000001 08000200 7f090909 1c000280"
    "05000100 06000000 06000200 901e0000 06000300 00500000 34000280 14000180 08000100 7f090909 08000200 7f000001"
    "1c000280 05000100 06000000 06000200 00500000 06000300 901e0000 08000300 00000188 08000800 00000000"
    "08000c00 790b80ac 08000b00 00000001 08000700 0000001d"
)
WEB = pack_socket(IP("127.9.9.9"), 80)
DONE = bytes.fromhex("14000000 03000200 01000000 9c6a0000 00000000")
TO = pack_socket(IP("127.9.9.9"), 53)
FROM = pack_socket(IP("127.0.0.5"), 5353)
TO_6 = pack_socket(IP("::1"), 53)
FROM_6 = pack_socket(IP("::1"), 5353)


@pytest.mark.parametrize(
    ("family", "message", "judgement", "stale"),
    [
        pytest.param(Family.IPV4, TRANSLATED, Judgement({TO: frozenset()}, {}), 1, id="no endpoint is left"),
        pytest.param(Family.IPV4, TRANSLATED, Judgement({TO: frozenset({FROM})}, {}), 0, id="its endpoint serves"),
        pytest.param(Family.IPV4, TRANSLATED, Judgement({FROM: frozenset()}, {}), 0, id="its destination isn't known"),
        pytest.param(Family.IPV4, TRANSLATED, Judgement({}, {TO: frozenset({FROM})}), 1, id="its frontend is gone"),
        pytest.param(Family.IPV6, TRANSLATED_6, Judgement({TO_6: frozenset()}, {}), 1, id="IPv6, no endpoint is left"),
        pytest.param(Family.IPV6, TRANSLATED_6, Judgement({TO_6: frozenset({FROM_6})}, {}), 0, id="IPv6, it serves"),
        pytest.param(
            Family.IPV4,
            TRANSLATED.replace(bytes.fromhex("0500010011"), bytes.fromhex("0500010006")),
            Judgement({TO: frozenset()}, {}),
            0,
            id="TCP",
        ),
        pytest.param(
            Family.IPV4,
            TRANSLATED[:124] + bytes.fromhex("0800120000070000") + TRANSLATED[132:],
            Judgement({TO: frozenset()}, {}),
            0,
            id="a zone of connection tracking that isn't ours",
        ),
    ],
)
def test_a_flow_is_read_and_judged(family: Family, message: bytes, judgement: Judgement, stale: int) -> None:
    scan = scan_flows(message * 2 + DONE, family, judgement)

    assert (len(scan.stale), scan.flows, scan.done, scan.code) == (2 * stale, 2, True, 0)


@pytest.mark.parametrize(
    ("message", "fresh", "stuck"),
    [
        pytest.param(STUCK, {WEB}, 1, id="unanswered, untranslated, to a frontend that is new"),
        pytest.param(STUCK, {TO}, 0, id="to what is no frontend that is new"),
        pytest.param(STUCK.replace(bytes.fromhex("00000188"), bytes.fromhex("0000018e")), {WEB}, 0, id="answered"),
        pytest.param(
            STUCK.replace(bytes.fromhex("080001007f090909"), bytes.fromhex("080001007f000005")),
            {WEB},
            0,
            id="translated, the endpoint hasn't answered yet",
        ),
        pytest.param(
            STUCK.replace(bytes.fromhex("0500010006"), bytes.fromhex("0500010084")), {WEB}, 0, id="SCTP is left alone"
        ),
    ],
)
def test_a_tcp_connection_is_judged_by_who_has_seen_it(message: bytes, fresh: set[bytes], stuck: int) -> None:
    scan = scan_flows(message + DONE, Family.IPV4, Judgement({WEB: frozenset()}, {}, frozenset(fresh)))

    assert (len(scan.stale), scan.flows) == (stuck, 1)


def test_a_flow_is_deleted_by_its_tuple_and_its_id() -> None:
    name = scan_flows(TRANSLATED, Family.IPV4, Judgement({TO: frozenset()}, {})).stale[0]

    assert name == TRANSLATED[20:72] + bytes.fromhex("08000c00790b80ac")
    assert pack_deletes(Family.IPV4, 7, [name, name]) == b"".join(
        bytes.fromhex(head) + name
        for head in (
            "50000000 0201 0100 07000000 00000000 02000000",
            "50000000 0201 0500 08000000 00000000 02000000",
        )
    )


@pytest.mark.parametrize("length", range(0, len(TRANSLATED), 3))
def test_a_message_that_is_cut_short_is_no_flow(length: int) -> None:
    scan = scan_flows(TRANSLATED[:length], Family.IPV4, Judgement({TO: frozenset()}, {}))

    assert (scan.stale, scan.flows, scan.done) == ([], 0, False)


def test_a_refusal_is_told() -> None:
    refused = bytes.fromhex("24000000 02000000 01000000 00000000 ffffffff 14000000 01010103 01000000 00000000")

    scan = scan_flows(refused, Family.IPV4, Judgement({}, {}))

    assert (scan.done, scan.code) == (True, 1)


def sockets(count: int, family: Family) -> list[bytes]:
    return [
        pack_socket(IP(f"10.0.{n >> 8}.{n & 255}" if family is Family.IPV4 else f"fd00::{n:x}"), 53)
        for n in range(1, count + 1)
    ]


@pytest.mark.parametrize(
    ("family", "count", "dumps"),
    [
        pytest.param(Family.IPV4, 0, (), id="nothing to look at"),
        pytest.param(Family.IPV4, 2, tuple(sockets(2, Family.IPV4)), id="a few destinations, one by one"),
        pytest.param(Family.IPV4, FEW + 1, (b"",), id="many, all flows at once"),
        pytest.param(Family.IPV6, FEW + 1, (b"\0\x35",), id="of IPv6, by port"),
    ],
)
def test_what_the_kernel_is_asked_for(family: Family, count: int, dumps: tuple[bytes, ...]) -> None:
    other = Family.IPV6 if family is Family.IPV4 else Family.IPV4
    found = [*sockets(count, family), *sockets(2, other)]
    udp, tcp = ([Dump(protocol, one) for one in dumps] for protocol in (17, 6))

    assert plan_dumps(family, Judgement(dict.fromkeys(found, frozenset()), {})) == tuple(udp)
    assert plan_dumps(family, Judgement({}, {}, frozenset(found[:count]))) in [tuple(tcp), tuple(reversed(tcp))]
    assert all(bytes((0x05, 0, 1, 0, dump.protocol)) in pack_dump(family, 1, dump) for dump in (*udp, *tcp))
