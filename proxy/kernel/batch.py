"""The framing of nfnetlink: messages, batches that the kernel takes whole or not at all, and its replies. Pure.

linux/netfilter/nfnetlink.h; behaviour of replies tried on Linux 6.18.
"""

import errno
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from endpointslice.types import Family
from proxy.kernel.attributes import iter_attributes, parse_name

HEADER = struct.Struct(
    "=IHHIIBB2s"
)  # nlmsghdr: length, type, flags, sequence, port; nfgenmsg: family, version, resource
_NLMSGHDR = struct.Struct("=IHHII")
_NO_RESOURCE = b"\0\0"
_NFTABLES = b"\0\x0a"  # NFNL_SUBSYS_NFTABLES, network order
_SUBSYSTEM = 10 << 8
_BATCH_BEGIN = 0x10
_BATCH_END = 0x11
NLMSG_ERROR = 2
NLMSG_DONE = 3
_ERROR = struct.Struct("=iIHHII")  # error, then the header of the message that it answers
_FLAG_CAPPED = 0x100  # the answered message is cut to its header
_FLAG_EXT_ACK = 0x200
_EXT_ACK_TEXT = 1

REQUEST = 0x1
ACK = 0x4
ECHO = 0x8
DUMP = 0x300
CREATE = 0x400
APPEND = 0x800

FAMILY_NUMBERS: Mapping[Family, int] = {Family.IPV4: 2, Family.IPV6: 10}


class Type(IntEnum):
    """nf_tables messages (linux/netfilter/nf_tables.h), with the subsystem in the high byte."""

    NEWTABLE = _SUBSYSTEM | 0
    GETTABLE = _SUBSYSTEM | 1
    DELTABLE = _SUBSYSTEM | 2
    NEWCHAIN = _SUBSYSTEM | 3
    GETCHAIN = _SUBSYSTEM | 4
    DELCHAIN = _SUBSYSTEM | 5
    NEWRULE = _SUBSYSTEM | 6
    GETRULE = _SUBSYSTEM | 7
    DELRULE = _SUBSYSTEM | 8
    NEWSET = _SUBSYSTEM | 9
    GETSET = _SUBSYSTEM | 10
    DELSET = _SUBSYSTEM | 11
    NEWSETELEM = _SUBSYSTEM | 12
    GETSETELEM = _SUBSYSTEM | 13
    DELSETELEM = _SUBSYSTEM | 14
    NEWGEN = _SUBSYSTEM | 15
    GETGEN = _SUBSYSTEM | 16


class Message(NamedTuple):
    """One request of a batch."""

    kind: Type
    family: Family
    payload: bytes  # attributes
    flags: int = 0  # besides REQUEST


class Reply(NamedTuple):
    """One message from the kernel."""

    kind: int
    flags: int
    sequence: int
    family: int  # 0 in errors
    payload: bytes  # attributes; of an error: all after the header


class Refusal(NamedTuple):
    """Why the kernel applied nothing of a batch."""

    code: int  # errno, positive
    message: int | None  # index in the batch; None: the batch as a whole
    text: str  # the kernel's own words; "" where it has none


def pack_message(message: Message, sequence: int, flags: int = 0) -> bytes:
    """One framed message."""
    kind, family, payload, own_flags = message
    size = HEADER.size + len(payload)
    all_flags = REQUEST | own_flags | flags
    return HEADER.pack(size, kind, all_flags, sequence, 0, FAMILY_NUMBERS[family], 0, _NO_RESOURCE) + payload


def pack_batch(messages: Sequence[Message], sequence: int) -> bytes:
    """A whole transaction. Message i has sequence number `sequence` + 1 + i; only the last asks for an ACK.

    Errors come for every message without asking.
    """
    last = len(messages) - 1
    parts = [HEADER.pack(HEADER.size, _BATCH_BEGIN, REQUEST, sequence, 0, 0, 0, _NFTABLES)]
    parts += [
        pack_message(message, sequence + 1 + index, ACK if index == last else 0)
        for index, message in enumerate(messages)
    ]
    parts.append(HEADER.pack(HEADER.size, _BATCH_END, REQUEST, sequence + 2 + last, 0, 0, 0, _NFTABLES))
    return b"".join(parts)


def batch_bytes(messages: Iterable[Message]) -> int:
    """The size of pack_batch()'s answer."""
    return 2 * HEADER.size + sum(HEADER.size + len(message.payload) for message in messages)


def iter_replies(datagram: bytes) -> Iterator[Reply]:
    """The messages of one datagram; stops where a length makes no sense."""
    start = 0
    while start + _NLMSGHDR.size <= len(datagram):
        size, kind, flags, sequence, _port = _NLMSGHDR.unpack_from(datagram, start)
        end = start + size
        if size < _NLMSGHDR.size or end > len(datagram):
            return
        first = start + _NLMSGHDR.size
        if kind in {NLMSG_ERROR, NLMSG_DONE} or size < HEADER.size:
            yield Reply(kind, flags, sequence, 0, datagram[first:end])
        else:
            yield Reply(kind, flags, sequence, datagram[first], datagram[start + HEADER.size : end])
        start += (size + 3) & ~3


def parse_error(reply: Reply) -> tuple[int, str]:
    """(errno or 0 for an ACK, the kernel's words) of an NLMSG_ERROR, or of the NLMSG_DONE of a dump."""
    if reply.kind == NLMSG_DONE:
        return -int.from_bytes(reply.payload[:4], sys.byteorder, signed=True), ""
    if len(reply.payload) < _ERROR.size:
        return errno.EBADMSG, ""
    code, size, *_rest = _ERROR.unpack_from(reply.payload)
    text = ""
    if reply.flags & _FLAG_EXT_ACK:
        start = _ERROR.size if reply.flags & _FLAG_CAPPED else 4 + ((size + 3) & ~3)
        for kind, first, last in iter_attributes(reply.payload, start):
            if kind == _EXT_ACK_TEXT:
                text = parse_name(reply.payload[first:last])
    return -code, text


def is_final(reply: Reply, sequence: int, count: int) -> bool:
    """Whether the kernel has said the last that counts about the batch of `count` messages begun with `sequence`.

    It answers in the order of the messages; an error of the batch as a whole carries BATCH_BEGIN's sequence number.
    """
    if reply.kind != NLMSG_ERROR:
        return False
    return reply.sequence == sequence + count or (reply.sequence == sequence and parse_error(reply)[0] != 0)


def find_refusal(replies: Iterable[Reply], sequence: int, count: int) -> Refusal | None:
    """The first error among all replies to a batch; None: the kernel applied the whole batch.

    A failed batch still gets an ACK for a last message that is fine (tried), so the last one alone proves nothing.
    """
    for reply in replies:
        if reply.kind == NLMSG_ERROR and sequence <= reply.sequence <= sequence + count + 1:
            code, text = parse_error(reply)
            if code:
                return Refusal(code, None if reply.sequence == sequence else reply.sequence - sequence - 1, text)
    return None


def describe(message: Message) -> str:
    """What a message asks for, for people: `newsetelem ip closeby endpoints`."""
    names = [
        parse_name(message.payload[first:last])
        for kind, first, last in iter_attributes(message.payload)
        if kind in {1, 2} or (kind == 3 and message.kind in {Type.NEWCHAIN, Type.GETCHAIN, Type.DELCHAIN})  # noqa: PLR2004  # NFTA_CHAIN_NAME
    ]
    family = "ip" if message.family is Family.IPV4 else "ip6"
    return " ".join([message.kind.name.lower(), family, *names])
