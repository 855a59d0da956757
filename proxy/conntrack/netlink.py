"""EFFECT. The kernel's table of tracked connections: flows listed, judged as they come, and deleted."""

import errno
import os
import socket
import struct
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import NamedTuple

from endpointslice.types import Family
from proxy.conntrack.coming import Coming
from proxy.conntrack.flows import Judgement
from proxy.conntrack.messages import Dump, Scan, pack_deletes, pack_dump, plan_dumps, scan_flows
from proxy.kernel.batch import NLMSG_ERROR, iter_replies, parse_error
from proxy.kernel.change import KernelError
from proxy.kernel.connection import open_socket

_RECEIVE_BYTES = 8 << 20
_BUFFER_BYTES = 1 << 18
_TIMEOUT_S = 5
_DELETES = 512  # flows in one send: about 40 kB, and at most as many answers
_GONE = errno.ENOENT  # it ended by itself, or is another flow by now


class Swept(NamedTuple):
    """What one look at a family's flows did."""

    flows: int  # that were looked at
    deleted: int
    complete: bool  # False: the kernel rebuilt its table meanwhile, so some may have been missed


class FlowTable:
    """Two sockets of this network namespace, one for lists and one for deletions; used by one thread."""

    def __init__(self) -> None:
        self._lists = _open()
        self._deletes = _open()
        self._buffer = bytearray(_BUFFER_BYTES)
        self._sequence = 0

    def close(self) -> None:
        """Close the sockets."""
        self._lists.close()
        self._deletes.close()

    def sweep(self, family: Family, judgement: Judgement, coming: Coming) -> Swept:
        """Delete the family's stale flows. KernelError: not permitted, or this kernel can't.

        Few destinations are asked for by the kernel's own filter; else all flows of the protocol are. Memory doesn't
        grow with the table: what a datagram shows to be stale is deleted before the next one is read.
        """
        judge = partial(_judge, family, judgement, coming)
        done = [self._sweep(family, dump, judge) for dump in plan_dumps(family, judgement)]
        return Swept(sum(d.flows for d in done), sum(d.deleted for d in done), all(d.complete for d in done))

    def _sweep(self, family: Family, dump: Dump, judge: Callable[[bytes], Scan]) -> Swept:
        self._sequence += 1
        _send(self._lists, pack_dump(family, self._sequence, dump))
        flows = deleted = 0
        complete = True
        while True:
            scan = judge(self._receive(self._lists))
            flows += scan.flows
            deleted += self._delete(family, scan.stale)
            complete = complete and not scan.interrupted
            if scan.code:
                raise KernelError(_explain(scan.code))
            if scan.done:
                return Swept(flows, deleted, complete)

    def _delete(self, family: Family, names: Iterable[bytes]) -> int:
        """How many were deleted; those that were gone already don't count."""
        deleted = 0
        left = iter(names)
        while batch := list(islice(left, _DELETES)):
            first = self._sequence + 1
            self._sequence += len(batch)
            _send(self._deletes, pack_deletes(family, first, batch))
            deleted += len(batch) - self._count_errors()
        return deleted

    def _count_errors(self) -> int:
        """Read until the answer to the last request of the batch."""
        errors = 0
        while True:
            for reply in iter_replies(self._receive(self._deletes)):
                if reply.kind != NLMSG_ERROR:
                    continue
                code = parse_error(reply)[0]
                if code not in {0, _GONE}:
                    raise KernelError(_explain(code))
                errors += code == _GONE
                if reply.sequence == self._sequence:
                    return errors

    def _receive(self, sock: socket.socket) -> bytes:
        try:
            size = sock.recv_into(self._buffer)
        except BlockingIOError as error:
            raise KernelError(f"no answer from the kernel within {_TIMEOUT_S} s") from error
        except OSError as error:
            raise KernelError(_explain(error.errno or 0)) from error
        return bytes(memoryview(self._buffer)[:size])


def _judge(family: Family, judgement: Judgement, coming: Coming, datagram: bytes) -> Scan:
    """By what is known now that the flows are here: they may be newer than the judgement."""
    return scan_flows(datagram, family, judgement._replace(coming=coming.sockets))


def _open() -> socket.socket:
    sock = open_socket(_RECEIVE_BYTES)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", _TIMEOUT_S, 0))
    return sock


def _send(sock: socket.socket, datagram: bytes) -> None:
    try:
        sock.send(datagram)
    except OSError as error:
        raise KernelError(_explain(error.errno or 0)) from error


def _explain(code: int) -> str:
    match code:
        case errno.EPERM:
            return "not permitted to use conntrack: CAP_NET_ADMIN is needed (run as root)"
        case errno.EOPNOTSUPP | errno.EPROTONOSUPPORT | errno.EINVAL:
            return f"this kernel has no nf_conntrack_netlink, or its module isn't loaded ({os.strerror(code)})"
        case _:
            return os.strerror(code)
