"""The kernel's time stamps, as a socket gives them."""

import socket
import struct

import pytest

from proxy.announcer.stamps import SO_TIMESTAMPNS, read_age

STAMP = socket.SOL_SOCKET, SO_TIMESTAMPNS, struct.pack("@qq", 100, 250_000_000)


@pytest.mark.parametrize(
    ("ancillary", "age_s"),
    [
        pytest.param([STAMP], 1.25, id="a stamp"),
        pytest.param([(socket.IPPROTO_IP, 8, b"x" * 12), STAMP], 1.25, id="behind something else"),
        pytest.param([], 0.0, id="none"),
        pytest.param([(*STAMP[:2], b"short")], 0.0, id="cut"),
    ],
)
def test_an_age_is_the_time_since_the_stamp(ancillary: list[tuple[int, int, bytes]], age_s: float) -> None:
    assert read_age(ancillary, 101.5) == pytest.approx(age_s)


def test_a_wall_clock_that_went_back_makes_nothing_older_than_new() -> None:
    assert read_age([STAMP], 99.0) == 0
