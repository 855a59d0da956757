"""Keys and data of elements: the very bytes that the kernel holds."""

import sys

import pytest

from endpointslice.types import CIDR, IP, Protocol
from proxy.planner.keys import pack_index, pack_node_port, pack_range, pack_target, pack_vip


@pytest.mark.parametrize(
    ("packed", "expected"),
    [
        pytest.param(
            pack_vip(IP("10.96.0.10"), Protocol.TCP, 80),
            "0a60000a 06000000 00500000",
            id="an IPv4 address and TCP",
        ),
        pytest.param(
            pack_vip(IP("fd00::a"), Protocol.UDP, 53),
            "fd00000000000000000000000000000a 11000000 00350000",
            id="an IPv6 address and UDP",
        ),
        pytest.param(pack_node_port(Protocol.SCTP, 30080), "84000000 75800000", id="a NodePort has no address"),
        pytest.param(pack_target(IP("10.244.0.1"), 8080), "0af40001 1f900000", id="an endpoint has no protocol"),
        pytest.param(pack_target(IP("fd00::1"), 65535), f"fd00{'0' * 26}01 ffff0000", id="an IPv6 endpoint"),
        pytest.param(
            pack_range(CIDR("10.244.0.0/16")), "0af40000 0af4ffff", id="a network: its first and last address"
        ),
        pytest.param(pack_range(CIDR("0.0.0.0/0")), "00000000 ffffffff", id="all addresses"),
        pytest.param(pack_range(CIDR("fd00::/127")), f"fd00{'0' * 28} fd00{'0' * 27}1", id="an IPv6 network"),
    ],
)
def test_packing(packed: bytes, expected: str) -> None:
    assert packed.hex() == expected.replace(" ", "")


@pytest.mark.parametrize("index", [0, 1, 1023, 1024, 65535, 70_000])
def test_an_index_is_in_the_order_of_this_host_as_numgen_writes_it(index: int) -> None:
    assert pack_index(index) == index.to_bytes(4, sys.byteorder)
