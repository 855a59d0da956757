"""EFFECT. One netlink socket to nf_tables: transactions, requests and dumps, and what their failures mean in words."""

import errno
import os
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeVar

from endpointslice.types import Family
from proxy.kernel.attributes import parse_attributes, parse_number
from proxy.kernel.batch import (
    DUMP,
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
    pack_message,
    parse_error,
)
from proxy.kernel.change import KernelError
from proxy.kernel.dumps import Unusable

NETLINK_NETFILTER = 12
SOL_NETLINK = 270
_NETLINK_CAP_ACK, _NETLINK_EXT_ACK = 10, 11
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_SEND_BYTES = 256 << 20  # a whole transaction is one message: 250,000 endpoints are 17 MB
_RECEIVE_BYTES = 64 << 20  # echoes of 10,000 deleted verdicts, or errors of a thousand messages
_SEND_OVERHEAD_BYTES = 32  # linux netlink_sendmsg()
_BUFFER_BYTES = 1 << 18  # the kernel's own messages end at 32 KiB
_TIMEOUT_S = 5  # the kernel answers before send() returns; this is for what should not happen
_STABLE_ATTEMPTS = 100
_MAX_SEQUENCE = 1 << 31

T = TypeVar("T")


def open_socket(receive_bytes: int) -> socket.socket:
    """A bound nfnetlink socket of this network namespace, with as large buffers as we may have. KernelError if none."""
    try:
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_NETFILTER)
    except OSError as error:
        raise KernelError(f"no netlink socket: {explain_errno(error.errno or 0)}") from error
    prepare_socket(sock, receive_bytes)
    return sock


def prepare_socket(sock: socket.socket, receive_bytes: int) -> None:
    """Set its options and bind it. KernelError, and a closed socket, where one is refused."""
    try:
        _grow(sock, _SO_SNDBUFFORCE, socket.SO_SNDBUF, _SEND_BYTES)
        _grow(sock, _SO_RCVBUFFORCE, socket.SO_RCVBUF, receive_bytes)
        sock.setsockopt(SOL_NETLINK, _NETLINK_CAP_ACK, 1)
        sock.setsockopt(SOL_NETLINK, _NETLINK_EXT_ACK, 1)
        sock.bind((0, 0))
    except OSError as error:
        sock.close()
        raise KernelError(f"no use of a netlink socket: {explain_errno(error.errno or 0)}") from error


def _grow(sock: socket.socket, force: int, polite: int, size_bytes: int) -> None:
    """Past the sysctl limit if we may (CAP_NET_ADMIN of the initial user namespace), else up to it."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, force, size_bytes)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, polite, size_bytes)


class Connection:
    """A socket with sequence numbers; used by one thread."""

    def __init__(self) -> None:
        self._socket = open_socket(_RECEIVE_BYTES)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", _TIMEOUT_S, 0))
        self._buffer = bytearray(_BUFFER_BYTES)
        self._sequence = 0
        self.port_id: int = self._socket.getsockname()[0]
        # The largest batch that the socket takes.
        self.limit_bytes = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) - _SEND_OVERHEAD_BYTES

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def transact(self, messages: Sequence[Message]) -> list[Reply]:
        """Apply the messages, all or none; the kernel's echoes. KernelError says whether the state is unknown."""
        count = len(messages)
        sequence = self._begin(count + 2)
        self._send(pack_batch(messages, sequence))
        replies: list[Reply] = []
        final = False
        while not final:
            fresh = list(iter_replies(self._receive()))
            replies += fresh
            final = any(is_final(reply, sequence, count) for reply in fresh)
        refusal = find_refusal(replies, sequence, count)
        if refusal:
            raise KernelError(_explain(refusal, messages))
        return [reply for reply in replies if reply.kind != NLMSG_ERROR]  # sequence 0 on Linux 6.18

    def request(self, message: Message) -> Reply | None:
        """The one answer to a get; None: there is no such thing (or no such table)."""
        sequence = self._begin(1)
        self._send(pack_message(message, sequence))
        while True:
            for reply in iter_replies(self._receive()):
                if reply.sequence != sequence:
                    continue
                if reply.kind != NLMSG_ERROR:
                    return reply
                return self._none_or_raise(reply, message)

    def dump(self, message: Message) -> Iterator[Reply]:
        """The answers to a dump as they arrive; none where the table is absent. Bracket it by read_stable()."""
        sequence = self._begin(1)
        self._send(pack_message(message, sequence, DUMP))
        while True:
            for reply in iter_replies(self._receive()):
                if reply.sequence != sequence:
                    continue
                if reply.kind in {NLMSG_ERROR, NLMSG_DONE}:
                    self._none_or_raise(reply, message)
                    return
                yield reply

    def read_stable(self, read: Callable[[], T | Unusable]) -> T | Literal[Unusable.FOREIGN]:
        """What `read` gives while no transaction of anybody falls between, and no element comes twice.

        A dump under change misses elements or gives them twice, and on Linux 6.18 no flag says so (tried).
        """
        for _attempt in range(_STABLE_ATTEMPTS):
            before = self.generation()
            value = read()
            if self.generation() == before and value is not Unusable.REPEATED:
                return value
        raise KernelError("nftables changed during each of many attempts to read it", unknown=True)

    def generation(self) -> int:
        """The ruleset's generation in this network namespace; every transaction of anybody changes it."""
        reply = self.request(Message(Type.GETGEN, Family.IPV4, b""))
        return parse_number(parse_attributes(reply.payload).get(1, b"")) if reply else 0

    def _begin(self, count: int) -> int:
        """The first of `count` fresh sequence numbers; replies to what went before are dropped."""
        while True:
            try:
                self._socket.recv_into(self._buffer, 0, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:  # of earlier replies: nobody waits for them
                    raise KernelError(f"netlink: {os.strerror(error.errno or 0)}", unknown=True) from error
        if self._sequence + count >= _MAX_SEQUENCE:
            self._sequence = 0
        first = self._sequence + 1
        self._sequence += count
        return first

    def _send(self, datagram: bytes) -> None:
        try:
            self._socket.send(datagram)
        except OSError as error:
            raise KernelError(
                f"{len(datagram)} bytes not sent: {explain_errno(error.errno or 0)}",
                unknown=error.errno not in {errno.EMSGSIZE, errno.EPERM},
            ) from error

    def _receive(self) -> bytes:
        try:
            size = self._socket.recv_into(self._buffer, 0, socket.MSG_TRUNC)
        except BlockingIOError as error:
            raise KernelError(f"no answer from the kernel within {_TIMEOUT_S} s", unknown=True) from error
        except OSError as error:
            raise KernelError(explain_errno(error.errno or 0), unknown=True) from error
        if size > _BUFFER_BYTES:
            raise KernelError(f"an answer of {size} bytes is larger than any known", unknown=True)
        return bytes(memoryview(self._buffer)[:size])

    @staticmethod
    def _none_or_raise(reply: Reply, message: Message) -> None:
        code, text = parse_error(reply)
        if code not in {0, errno.ENOENT}:
            raise KernelError(_explain(Refusal(code, 0, text), [message]))


def explain_errno(code: int) -> str:
    """Plain words for an operator."""
    match code:
        case errno.EPERM:
            return "not permitted to use nftables: CAP_NET_ADMIN is needed (run as root)"
        case errno.EPROTONOSUPPORT | errno.EOPNOTSUPP | errno.EAFNOSUPPORT:
            return f"this kernel has no nf_tables, or lacks a part of it that we use ({os.strerror(code)})"
        case errno.ENOBUFS:
            return "the socket's buffer was too small for the kernel's replies"
        case _:
            return os.strerror(code)


def _explain(refusal: Refusal, messages: Sequence[Message]) -> str:
    """One line: what was asked and why not."""
    reason = explain_errno(refusal.code)
    if refusal.code == errno.ENOENT and refusal.message is not None and _is_of_ours_alone(messages, refusal.message):
        reason = f"this kernel lacks a part of nf_tables or nf_conntrack that it needs ({reason})"
    if refusal.text:
        reason = f"{reason} ({refusal.text})"
    if refusal.message is None or not refusal.message < len(messages):
        return f"transaction of {len(messages)} messages, {batch_bytes(messages)} bytes: {reason}"
    return f"{describe(messages[refusal.message])}: {reason}"


def _is_of_ours_alone(messages: Sequence[Message], index: int) -> bool:
    """Whether the message makes a chain or rule of a table that this transaction made: only the kernel can lack it."""
    table_made = any(message.kind == Type.NEWTABLE for message in messages[:index])
    return table_made and messages[index].kind in {Type.NEWCHAIN, Type.NEWRULE}
