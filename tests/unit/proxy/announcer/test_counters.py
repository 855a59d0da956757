"""The kernel's table of received packets."""

from proxy.announcer.counters import parse_received, read_received

TABLE = """\
Inter-|   Receive                            |  Transmit
 face |bytes    packets errs drop fifo frame |bytes    packets errs
    lo:    100       2    0    0    0     0        100       2    0
  eth0: 5000      31    0    0    0     0        100       7    0
broken
"""


def test_packets_are_counted_by_interface() -> None:
    assert parse_received(TABLE) == {"lo": 2, "eth0": 31}


def test_this_kernel_has_such_a_table() -> None:
    assert "lo" in read_received()
