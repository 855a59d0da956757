"""The socket filter, as far as it can be judged without a kernel: tests in namespaces send it real frames."""

import struct

import pytest

from proxy.announcer.packet_filter import ACCEPT, REJECT, Line, assemble, build_filter, count_instructions

JUMPS = {0x15, 0x45}
RETURN = 0x06


def test_every_jump_leads_forward_to_an_instruction_and_the_last_two_decide() -> None:
    program = build_filter(0x1234)
    lines = list(struct.iter_unpack("HBBI", program))

    assert count_instructions(program) == len(lines)
    assert all(max(yes, no) + at + 1 < len(lines) for at, (code, yes, no, _) in enumerate(lines) if code in JUMPS)
    assert [code for code, *_ in lines[-2:]] == [RETURN, RETURN]
    assert lines[-1][3] == 0
    assert [value for *_, value in lines].count(0x1234) == 2


def test_a_label_is_counted_from_the_instruction_after_the_jump() -> None:
    lines = [Line(0x15, 1, yes=ACCEPT, no=REJECT), Line(RETURN, 9, label=ACCEPT), Line(RETURN, 0, label=REJECT)]

    assert list(struct.iter_unpack("HBBI", assemble(lines))) == [(0x15, 0, 1, 1), (RETURN, 0, 0, 9), (RETURN, 0, 0, 0)]


def test_a_label_that_is_nowhere_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        assemble([Line(0x15, 1, yes="nowhere")])
