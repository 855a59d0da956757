"""Which port an API server gets that has none of its own."""

from pathlib import Path

import pytest

from e2e.controlplane.cluster import free_port


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_no_connection_takes_the_port_of_a_server_that_is_away(address: str) -> None:
    first, last = (int(word) for word in Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    if first <= 10_000 and last >= 65_535:
        pytest.skip("connections may have every port here")

    ports = {free_port(address) for _ in range(50)}

    assert ports.isdisjoint(range(first, last + 1))
