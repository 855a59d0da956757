"""What the client of DNS says and understands; that it looks names up is told by e2e/test_stories_dns.py."""

import ipaddress
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.world.lookups import Answer, Fault, Question, encode_query, parse_nsid, parse_response

API = Question("kubernetes.default.svc.cluster.local", "A", "10.96.0.1")
NUMBER = 0x1234
LABELS = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
NAMES = st.lists(LABELS, min_size=1, max_size=5).map(".".join)
POINTER = b"\xc0\x0c"  # to the question's name


def record(kind: int, data: bytes, name: bytes = POINTER) -> bytes:
    return name + struct.pack("!HHIH", kind, 1, 30, len(data)) + data


def nsid(server: str) -> bytes:
    return record(41, struct.pack("!HH", 3, len(server)) + server.encode(), b"\0")


def response(question: Question, records: list[bytes], flags: int = 0x8580) -> bytes:
    """To `encode_query`: its own question, without its OPT record of 15 bytes."""
    query = encode_query(NUMBER, question)
    return struct.pack("!6H", NUMBER, flags, 1, len(records), 0, 0) + query[12:-15] + b"".join(records)


A = record(1, bytes([10, 96, 0, 1]))
AAAA = record(28, ipaddress.ip_address("fd00::a").packed)
ALIAS = record(5, b"\x03www" + POINTER)


@pytest.mark.parametrize(
    ("message", "meant"),
    [
        pytest.param(response(API, [A, nsid("node-1")]), Answer(("10.96.0.1",), "node-1"), id="an address and a node"),
        pytest.param(response(API, [A]), Answer(("10.96.0.1",), ""), id="a server that gives no NSID"),
        pytest.param(response(API, [AAAA, A]), Answer(("fd00::a", "10.96.0.1"), ""), id="both families"),
        pytest.param(response(API, [ALIAS, A]), Answer(("10.96.0.1",), ""), id="an alias before the address"),
        pytest.param(response(API, [record(1, b"abc")]), Answer((), ""), id="an address of three bytes is none"),
        pytest.param(response(API, []), Answer((), ""), id="a name without addresses"),
        pytest.param(response(API, [], 0x8583), Fault.NO_NAME, id="no such name"),
        pytest.param(response(API, [], 0x8582), Fault.SERVER, id="a server's failure"),
        pytest.param(response(API, [], 0x8585), Fault.SERVER, id="a server that refuses"),
        pytest.param(response(API, [A], 0x8780), Fault.TRUNCATED, id="more than a datagram holds"),
        pytest.param(response(API, [A], 0x0100), Fault.FOREIGN, id="a query is no response"),
        pytest.param(b"\0\0" + response(API, [A])[2:], Fault.FOREIGN, id="a response to another query"),
        pytest.param(b"", Fault.SHORT, id="nothing"),
        pytest.param(response(API, [A])[:-1], Fault.SHORT, id="an address cut short"),
        pytest.param(response(API, [A])[:14], Fault.SHORT, id="a name cut short"),
    ],
)
def test_what_a_response_means(message: bytes, meant: Answer | Fault) -> None:
    assert parse_response(message, NUMBER) == meant


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_a_fault(data: bytes) -> None:
    assert isinstance(parse_response(data, NUMBER), (Answer, Fault))


@given(st.binary(max_size=120), st.tuples(*[st.integers(0, 65535)] * 4))
def test_any_bytes_after_a_good_header_are_an_answer_or_a_fault(data: bytes, counts: tuple[int, int, int, int]) -> None:
    header = struct.pack("!6H", NUMBER, 0x8180, *counts)

    assert isinstance(parse_response(header + data, NUMBER), (Answer, Fault))


@given(NAMES, st.lists(st.ip_addresses(), max_size=4), st.text("abcdefgh-01", max_size=30))
def test_every_address_and_the_node_are_read(
    name: str, addresses: list[ipaddress.IPv4Address | ipaddress.IPv6Address], server: str
) -> None:
    records = [record(1 if ip.version == 4 else 28, ip.packed) for ip in addresses]
    read = parse_response(response(Question(name, "A", ""), [*records, nsid(server)]), NUMBER)

    assert isinstance(read, Answer)
    assert [ipaddress.ip_address(ip) for ip in read.addresses] == addresses
    assert read.server == server


def test_a_query_asks_for_the_name_and_for_the_servers_identity() -> None:
    query = encode_query(NUMBER, Question("a.example.", "AAAA", ""))

    assert query == (
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01"
        b"\x01a\x07example\x00\x00\x1c\x00\x01"
        b"\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x04\x00\x03\x00\x00"
    )


def test_the_identity_is_found_among_other_options() -> None:
    cookie = struct.pack("!HH", 10, 2) + b"xy"
    identity = struct.pack("!HH", 3, 4) + b"east"

    assert parse_nsid(cookie + identity) == "east"
    assert parse_nsid(cookie) == ""
