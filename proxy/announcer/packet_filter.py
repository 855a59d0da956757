"""The classic BPF program of our AF_PACKET sockets: ARP, NDP, and echo replies to our own echoes; all else stays out.

The kernel runs it on each packet of the interface, so that only what is looked at wakes the process.
"""

import struct
from typing import NamedTuple

from proxy.announcer.ethernet import EtherType

# Of linux/bpf_common.h and linux/filter.h.
_LD_WORD, _LD_HALF, _LD_BYTE = 0x20, 0x28, 0x30
_LD_HALF_INDEXED = 0x48
_LDX_HEADER_LENGTH = 0xB1
_JUMP_EQUAL, _JUMP_BITS = 0x15, 0x45
_RETURN = 0x06
_ANCILLARY = 0xFFFFF000
_PACKET_TYPE, _VLAN_PRESENT = _ANCILLARY + 4, _ANCILLARY + 48
_OTHER_HOST, _OUTGOING = 3, 4
_INSTRUCTION = struct.Struct("HBBI")

_ETHERTYPE, _IP = 12, 14
_V4_FRAGMENT, _V4_PROTOCOL = _IP + 6, _IP + 9
_V6_NEXT, _V6_TYPE, _V6_ECHO_ID = _IP + 6, _IP + 40, _IP + 44
_ICMP, _ICMPV6 = 1, 58
_ECHO_REPLY, _ECHO_REPLY_V6 = 0, 129
_SOLICITATION, _ADVERTISEMENT = 135, 136
LONGEST_FRAME = 2048

ACCEPT, REJECT = "accept", "reject"


class Line(NamedTuple):
    """One instruction; jumps name the label to go to, "" the next line."""

    code: int
    value: int
    yes: str = ""
    no: str = ""
    label: str = ""  # of this line


def build_filter(echo_id: int) -> bytes:
    """The program. Tagged frames belong to a VLAN's own interface; what we sent ourselves is no news."""
    lines = [
        Line(_LD_WORD, _VLAN_PRESENT),
        Line(_JUMP_EQUAL, 0, no=REJECT),
        Line(_LD_WORD, _PACKET_TYPE),
        Line(_JUMP_EQUAL, _OUTGOING, yes=REJECT),
        Line(_JUMP_EQUAL, _OTHER_HOST, yes=REJECT),
        Line(_LD_HALF, _ETHERTYPE),
        Line(_JUMP_EQUAL, EtherType.ARP, yes=ACCEPT),
        Line(_JUMP_EQUAL, EtherType.IPV6, yes="ipv6"),
        Line(_JUMP_EQUAL, EtherType.IPV4, no=REJECT),
        Line(_LD_BYTE, _V4_PROTOCOL),
        Line(_JUMP_EQUAL, _ICMP, no=REJECT),
        Line(_LD_HALF, _V4_FRAGMENT),
        Line(_JUMP_BITS, 0x1FFF, yes=REJECT),
        Line(_LDX_HEADER_LENGTH, _IP),
        Line(_LD_HALF_INDEXED, _IP),  # type and code
        Line(_JUMP_EQUAL, _ECHO_REPLY << 8, no=REJECT),
        Line(_LD_HALF_INDEXED, _IP + 4),
        Line(_JUMP_EQUAL, echo_id, yes=ACCEPT, no=REJECT),
        Line(_LD_BYTE, _V6_NEXT, label="ipv6"),
        Line(_JUMP_EQUAL, _ICMPV6, no=REJECT),
        Line(_LD_BYTE, _V6_TYPE),
        Line(_JUMP_EQUAL, _SOLICITATION, yes=ACCEPT),
        Line(_JUMP_EQUAL, _ADVERTISEMENT, yes=ACCEPT),
        Line(_JUMP_EQUAL, _ECHO_REPLY_V6, no=REJECT),
        Line(_LD_HALF, _V6_ECHO_ID),
        Line(_JUMP_EQUAL, echo_id, yes=ACCEPT, no=REJECT),
        Line(_RETURN, LONGEST_FRAME, label=ACCEPT),
        Line(_RETURN, 0, label=REJECT),
    ]
    return assemble(lines)


def assemble(lines: list[Line]) -> bytes:
    """The instructions; every label must come after its jumps, as the kernel wants."""
    places = {line.label: at for at, line in enumerate(lines) if line.label}
    program = b""
    for at, line in enumerate(lines):
        yes, no = (places[label] - at - 1 if label else 0 for label in (line.yes, line.no))
        program += _INSTRUCTION.pack(line.code, yes, no, line.value)
    return program


def count_instructions(program: bytes) -> int:
    """How many there are."""
    return len(program) // _INSTRUCTION.size
