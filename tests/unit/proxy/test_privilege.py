"""What /proc tells of a process's rights."""

from proxy.privilege import read_sets

STATUS = """Name:	closeby
CapInh:	0000000000000000
CapPrm:	0000000000001000
CapEff:	0000000000000000
CapBnd:	0000000000001000
CapAmb:	0000000000000000
"""


def test_the_sets_are_read_as_bits() -> None:
    assert read_sets(STATUS) == (1 << 12, 0, 0)
