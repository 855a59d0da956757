"""Batches as nfnetlink takes them, and replies as it gives them."""

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import Family
from proxy.kernel.attributes import pack_name
from proxy.kernel.batch import (
    CREATE,
    NLMSG_DONE,
    NLMSG_ERROR,
    Message,
    Refusal,
    Reply,
    Type,
    batch_bytes,
    describe,
    find_refusal,
    is_final,
    iter_replies,
    pack_batch,
    parse_error,
)

ADD = Message(Type.NEWSETELEM, Family.IPV6, pack_name(1, "closeby") + pack_name(2, "endpoints"), CREATE)
CAPPED, EXT_ACK = 0x100, 0x200


def error(code: int, sequence: int, text: str = "") -> Reply:
    """An NLMSG_ERROR as Linux sends it with NETLINK_CAP_ACK and NETLINK_EXT_ACK."""
    header = struct.pack("=iIHHII", -code, 20, Type.NEWSETELEM, 1, sequence, 0)
    flags = CAPPED | (EXT_ACK if text else 0)
    return Reply(NLMSG_ERROR, flags, sequence, 0, header + (pack_name(1, text) if text else b""))


def test_a_batch_is_framed_and_asks_for_one_ack() -> None:
    small = Message(Type.DELTABLE, Family.IPV4, b"")

    batch = pack_batch([small, small], 7)

    assert batch.hex(" ", 4) == (
        "14000000 10000100 07000000 00000000 0000000a "  # BATCH_BEGIN
        "14000000 020a0100 08000000 00000000 02000000 "
        "14000000 020a0500 09000000 00000000 02000000 "  # with NLM_F_ACK
        "14000000 11000100 0a000000 00000000 0000000a"  # BATCH_END
    )


@given(st.lists(st.binary(max_size=8).map(lambda b: ADD._replace(payload=b + bytes(-len(b) % 4))), min_size=1))
def test_the_size_of_a_batch_is_known_before_it_is_packed(messages: list[Message]) -> None:
    assert batch_bytes(messages) == len(pack_batch(messages, 1))


def test_a_batch_read_as_replies_gives_its_messages_back() -> None:
    begin, added, end = iter_replies(pack_batch([ADD], 1))

    assert added == Reply(Type.NEWSETELEM, 0x1 | 0x4 | CREATE, 2, 10, ADD.payload)
    assert (begin.sequence, end.sequence) == (1, 3)


@given(st.binary(max_size=80))
def test_any_datagram_gives_replies_and_no_exception(datagram: bytes) -> None:
    for reply in iter_replies(datagram):
        parse_error(reply)
        is_final(reply, 1, 1)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(error(0, 1), (0, ""), id="an ACK"),
        pytest.param(error(errno.EEXIST, 1), (errno.EEXIST, ""), id="an error without words"),
        pytest.param(error(errno.EINVAL, 1, "no such thing"), (errno.EINVAL, "no such thing"), id="with words"),
        pytest.param(
            Reply(NLMSG_ERROR, EXT_ACK, 1, 0, struct.pack("=iIHHII4x", -22, 20, 1, 1, 1, 0) + pack_name(1, "x")),
            (errno.EINVAL, "x"),
            id="with words after the whole message",
        ),
        pytest.param(Reply(NLMSG_ERROR, 0, 1, 0, b"\1"), (errno.EBADMSG, ""), id="an error cut short"),
        pytest.param(Reply(NLMSG_DONE, 0, 1, 0, bytes(4)), (0, ""), id="the end of a dump"),
        pytest.param(
            Reply(NLMSG_DONE, 0, 1, 0, struct.pack("=i", -errno.EINTR)), (errno.EINTR, ""), id="a dump that failed"
        ),
    ],
)
def test_errors_are_read(reply: Reply, expected: tuple[int, str]) -> None:
    assert parse_error(reply) == expected


@pytest.mark.parametrize(
    ("replies", "refusal"),
    [
        pytest.param([error(0, 13)], None, id="only the last one's ACK"),
        pytest.param(
            [error(errno.EEXIST, 11), error(0, 13)],
            Refusal(errno.EEXIST, 0, ""),
            id="a message failed though the last one's ACK is fine",
        ),
        pytest.param([error(errno.ERESTART, 10)], Refusal(errno.ERESTART, None, ""), id="the batch as a whole"),
        pytest.param([error(errno.ENOENT, 13, "hm")], Refusal(errno.ENOENT, 2, "hm"), id="the last message"),
        pytest.param([error(errno.EEXIST, 9), error(0, 13)], None, id="an error of an earlier batch is not ours"),
        pytest.param(
            [Reply(Type.DELSETELEM, 0, 0, 2, b""), error(0, 13)], None, id="an echo among the answers is no error"
        ),
        pytest.param(
            [error(errno.EEXIST, 11), error(errno.ENOENT, 12), error(0, 13)],
            Refusal(errno.EEXIST, 0, ""),
            id="the first of several",
        ),
    ],
)
def test_a_batch_is_good_only_if_every_reply_says_so(replies: list[Reply], refusal: Refusal | None) -> None:
    assert find_refusal(replies, sequence=10, count=3) == refusal


@pytest.mark.parametrize(
    ("reply", "final"),
    [
        pytest.param(error(0, 13), True, id="the ACK of the last message"),
        pytest.param(error(errno.EEXIST, 13), True, id="an error of the last message"),
        pytest.param(error(errno.EEXIST, 12), False, id="an error of another: more may come"),
        pytest.param(error(errno.EPERM, 10), True, id="an error of the whole batch"),
        pytest.param(error(0, 10), False, id="an ACK of BATCH_BEGIN"),
        pytest.param(error(0, 3), False, id="an ACK of an earlier batch"),
        pytest.param(Reply(Type.DELSETELEM, 0, 13, 2, b""), False, id="an echo"),
    ],
)
def test_the_reply_that_ends_the_waiting(reply: Reply, *, final: bool) -> None:
    assert is_final(reply, sequence=10, count=3) == final


@pytest.mark.parametrize(
    ("message", "words"),
    [
        pytest.param(ADD, "newsetelem ip6 closeby endpoints", id="elements"),
        pytest.param(
            Message(Type.NEWCHAIN, Family.IPV4, pack_name(1, "closeby") + pack_name(3, "pick_3")),
            "newchain ip closeby pick_3",
            id="a chain, whose name is another attribute",
        ),
        pytest.param(Message(Type.GETGEN, Family.IPV4, b""), "getgen ip", id="nothing named"),
    ],
)
def test_a_message_is_described_for_people(message: Message, words: str) -> None:
    assert describe(message) == words
