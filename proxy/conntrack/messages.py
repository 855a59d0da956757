"""ctnetlink: asking for flows, judging them as they come, and naming those to delete. Pure.

linux/netfilter/nfnetlink_conntrack.h; the order of attributes as Linux writes it (net/netfilter/nf_conntrack_netlink.c,
ctnetlink_fill_info), tried on 6.18. A flow is read at fixed offsets, since there may be hundreds of thousands; one that
looks otherwise (in a connection tracking zone, or by another kernel's order) isn't recognised, and so never deleted.
"""

import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from endpointslice.types import Family
from proxy.conntrack.flows import Judgement, Socket, is_stale, is_stuck
from proxy.kernel.attributes import iter_attributes, pack_attribute, pack_nest
from proxy.kernel.batch import ACK, DUMP, FAMILY_NUMBERS, HEADER, NLMSG_DONE, NLMSG_ERROR, REQUEST

_GET = 1 << 8 | 1  # IPCTNL_MSG_CT_GET of NFNL_SUBSYS_CTNETLINK
_DELETE = 1 << 8 | 2
_TCP, _UDP = 6, 17
_ANSWERED = 2  # IPS_SEEN_REPLY
_NESTED = 0x8000
_TUPLE_ORIG, _TUPLE_REPLY, _STATUS, _ID, _FILTER = 1, 2, 3, 12, 25
_TUPLE_IP, _TUPLE_PROTO = 1, 2
_PROTO_NUM, _PROTO_DST_PORT = 1, 3
_IP_DST: Mapping[Family, int] = {Family.IPV4: 2, Family.IPV6: 4}
_FILTER_ORIG_FLAGS = 1
_BY_PROTOCOL = 1 << 3  # CTA_FILTER_F_CTA_PROTO_NUM
_BY_ADDRESS = 1 << 1  # .._CTA_IP_DST
_BY_PORT = 1 << 5  # .._CTA_PROTO_DST_PORT
_IPV6_BYTES = 18  # of an address and port
FEW = 8  # destinations that are asked for one by one: the kernel walks its table once for each
_DUMP_INTERRUPTED = 0x10  # NLM_F_DUMP_INTR
_HEAD = struct.Struct("=HH")
_NO_RESOURCE = b"\0\0"
_TUPLE_START = HEADER.size


Judge = Callable[[Judgement, Socket, Socket], bool]


class Dump(NamedTuple):
    """What to ask the kernel for."""

    protocol: int
    destination: bytes  # an address and port, a port, or b"" for all


class Layout(NamedTuple):
    """Where a family's flows have what decides, from the start of the message."""

    fields: struct.Struct
    original: bytes  # the heads of what must stand there
    reply: bytes
    end: int  # of the original tuple


class Scan(NamedTuple):
    """What one datagram of a dump brought."""

    stale: list[bytes]  # for pack_deletes()
    flows: int
    done: bool
    code: int = 0  # errno of a dump that failed
    interrupted: bool = False  # the table was rebuilt meanwhile: flows may be missing


def _layout(family: Family) -> Layout:
    size = 4 if family is Family.IPV4 else 16
    fields = struct.Struct(
        "=IHH12x"  # nlmsghdr and nfgenmsg: size, type, flags
        f"4s{12 + size}x{size}s8xB3x12x2s2x"  # original: head, destination, protocol, destination port
        f"4s8x{size}s{20 + size}x2s2x8x4s4s"  # reply: head, source, source port; the next attribute's head and value
    )
    tuple_bytes = 4 + 4 + 2 * (4 + size) + 28
    original, reply = (_HEAD.pack(tuple_bytes, _NESTED | kind) for kind in (_TUPLE_ORIG, _TUPLE_REPLY))
    return Layout(fields, original, reply, _TUPLE_START + tuple_bytes)


_LAYOUTS: Mapping[Family, Layout] = {family: _layout(family) for family in Family}
_STATUS_HEAD = _HEAD.pack(8, _STATUS)  # not a zone's, which would stand before it


def plan_dumps(family: Family, judgement: Judgement) -> tuple[Dump, ...]:
    """What to ask the kernel for: of either protocol a few destinations one by one, or all flows.

    IPv6 destinations are asked for by port: Linux compares IPv6 addresses the wrong way round (6.18: a dump by
    destination gives the flows that went elsewhere; IPv4 is right).
    """
    is_ipv6 = family is Family.IPV6
    udp = _plan(_UDP, {**judgement.keep, **judgement.gone}, is_ipv6=is_ipv6)
    return udp + _plan(_TCP, judgement.fresh, is_ipv6=is_ipv6)


def _plan(protocol: int, sockets: Collection[Socket], *, is_ipv6: bool) -> tuple[Dump, ...]:
    size = _IPV6_BYTES if is_ipv6 else 6
    asked = dict.fromkeys(one[-2:] if is_ipv6 else one for one in sockets if len(one) == size)
    return tuple(Dump(protocol, one) for one in (asked if len(asked) <= FEW else (b"",)))


def pack_dump(family: Family, sequence: int, dump: Dump) -> bytes:
    """The request.

    Kernels before 5.8 don't know the filter and give all flows; scan_flows() looks for itself.
    """
    address, port = dump.destination[:-2], dump.destination[-2:]
    protocol = [pack_attribute(_PROTO_NUM, bytes((dump.protocol,)))]
    flags, ips = _BY_PROTOCOL, b""
    if port:
        flags |= _BY_PORT
        protocol.append(pack_attribute(_PROTO_DST_PORT, port))
    if address:
        flags |= _BY_ADDRESS
        ips = pack_nest(_TUPLE_IP | _NESTED, pack_attribute(_IP_DST[family], address))
    wanted = pack_nest(_TUPLE_ORIG | _NESTED, ips, pack_nest(_TUPLE_PROTO | _NESTED, *protocol))
    by = pack_nest(_FILTER | _NESTED, pack_attribute(_FILTER_ORIG_FLAGS, struct.pack("=I", flags)))
    return _frame(_GET, DUMP, family, sequence, wanted + by)


def scan_flows(datagram: bytes, family: Family, judgement: Judgement) -> Scan:
    """The stale flows among those of the datagram."""
    layout = _LAYOUTS[family]
    fields = layout.fields
    stale: list[bytes] = []
    heads = (layout.original, layout.reply, _STATUS_HEAD)
    start = flows = 0
    interrupted = False
    while start + HEADER.size <= len(datagram):
        size, kind, flags = struct.unpack_from("=IHH", datagram, start)
        interrupted = interrupted or bool(flags & _DUMP_INTERRUPTED)
        if kind in {NLMSG_DONE, NLMSG_ERROR}:
            code = -struct.unpack_from("=i", datagram, start + 16)[0]
            return Scan(stale, flows, done=True, code=code, interrupted=interrupted)
        if size < HEADER.size or start + size > len(datagram):
            break
        if size >= fields.size:
            flows += 1
            _s, _k, _f, original, to, number, to_port, reply, by, by_port, after, status = fields.unpack_from(
                datagram, start
            )
            wrong = _choose_judge(number, status) if (original, reply, after) == heads else None
            if wrong is not None and wrong(judgement, to + to_port, by + by_port):
                stale.append(_name(datagram[start : start + size], layout))
        start += (size + 3) & ~3
    return Scan(stale, flows, done=False, interrupted=interrupted)


def _choose_judge(protocol: int, status: bytes) -> Judge | None:
    """Who says whether the flow goes; None: it stays."""
    if protocol == _UDP:
        return is_stale
    return is_stuck if protocol == _TCP and not status[-1] & _ANSWERED else None


def _name(message: bytes, layout: Layout) -> bytes:
    """The attributes that name this one flow: its original tuple, and its id, which no later flow of the tuple has."""
    ids = [pack_attribute(_ID, message[a:b]) for kind, a, b in iter_attributes(message, layout.end) if kind == _ID]
    return message[_TUPLE_START : layout.end] + b"".join(ids)


def pack_deletes(family: Family, sequence: int, names: Iterable[bytes]) -> bytes:
    """Requests to delete the flows, to be sent as one; the last asks for an answer, the others answer only errors."""
    found = list(names)
    last = len(found) - 1
    return b"".join(
        _frame(_DELETE, ACK if index == last else 0, family, sequence + index, name) for index, name in enumerate(found)
    )


def _frame(kind: int, flags: int, family: Family, sequence: int, payload: bytes) -> bytes:
    size = HEADER.size + len(payload)
    return HEADER.pack(size, kind, REQUEST | flags, sequence, 0, FAMILY_NUMBERS[family], 0, _NO_RESOURCE) + payload
