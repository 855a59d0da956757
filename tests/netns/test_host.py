"""The host's own addresses, from a real kernel."""

import queue

import pytest

from e2e.world.netns import run_in, run_ip
from endpointslice.types import IP
from proxy.host import HostAddressWatch
from tests.netns.kernel_space import Space

pytestmark = pytest.mark.netns

PATIENCE_S = 30.0
V4, V6 = IP("192.0.2.1"), IP("2001:db8::1")


def test_addresses_are_posted_at_start_and_whenever_one_comes_or_goes(space: Space) -> None:
    posted: queue.SimpleQueue[frozenset[IP]] = queue.SimpleQueue()
    run_ip({space.name: ["link set lo up", f"address add {V4}/32 dev lo"]})

    run_in(space.name, HostAddressWatch(posted.put).start)
    assert posted.get_nowait() == {V4}  # before anything is written; neither 127.0.0.1 nor ::1

    run_ip({space.name: [f"address add {V6}/128 dev lo nodad"]})
    assert posted.get(timeout=PATIENCE_S) == {V4, V6}

    run_ip({space.name: ["address add 169.254.1.1/32 scope link dev lo"]})
    run_ip({space.name: [f"address delete {V4}/32 dev lo"]})
    assert posted.get(timeout=PATIENCE_S) == {V6}
    assert posted.empty()
