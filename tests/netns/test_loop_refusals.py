"""The loop with a real kernel behind a socket whose buffers are too small."""

import gc
import socket
import threading
from collections.abc import Iterator

import pytest

from endpointslice.snapshot import Changed
from endpointslice.types import IP, Family, Kind, NodeName
from proxy.kernel.ruleset import SetId, SetName
from proxy.messages import Events, Message, Stop
from proxy.pacing import Pacing
from proxy.planner.settings import Settings
from proxy.sync import Loop
from tests.builders import a_slice, service, slice_endpoint
from tests.loop import PATIENCE_S, KeepingSource, first_lists, metric
from tests.netns.kernel_space import Space
from tests.waiting import until

pytestmark = pytest.mark.netns

FAILURES = "kubeproxy_sync_proxy_rules_nftables_sync_failures_total"
ENDPOINTS = SetId(Family.IPV4, SetName.ENDPOINTS)
PORTS = SetId(Family.IPV4, SetName.SERVICE_PORTS)
MANY = 3000


class Rig:
    """A loop in a thread, its kernel, and a second kernel that looks."""

    def __init__(self, space: Space) -> None:
        self.kernel = space.open_kernel()
        self.looking = space.open_kernel()
        self.loop = Loop(Settings(NodeName("n1")), KeepingSource(), self.kernel, Pacing(0.0, 0.05))
        self.thread = threading.Thread(target=self.loop.run, daemon=True)
        self.thread.start()

    def send(self, *messages: Message) -> None:
        for message in messages:
            self.loop.inbox.put(message)

    def shrink(self, option: int) -> int:
        """Make one buffer of the loop's socket as small as can be; its size before."""
        sock = self.kernel._connection._socket  # noqa: SLF001  # no other way
        before = sock.getsockopt(socket.SOL_SOCKET, option)
        sock.setsockopt(socket.SOL_SOCKET, option, 1)
        return before

    def grow(self, option: int) -> None:
        force = {socket.SO_SNDBUF: 32, socket.SO_RCVBUF: 33}[option]  # SO_*BUFFORCE
        self.kernel._connection._socket.setsockopt(socket.SOL_SOCKET, force, 1 << 24)  # noqa: SLF001

    def held(self, set_id: SetId) -> int:
        installed = self.looking.read()
        assert installed is not None
        return len(installed.elements[set_id])


@pytest.fixture
def rig(space: Space) -> Iterator[Rig]:
    thresholds = gc.get_threshold()
    made = Rig(space)
    yield made
    made.send(Stop())
    made.thread.join(PATIENCE_S)
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def endpoints(count: int) -> list[Changed]:
    ends = [slice_endpoint(f"10.244.{number // 250}.{number % 250 + 1}") for number in range(count)]
    return [Changed(Kind.ENDPOINT_SLICE, "default/web-1", a_slice(ends))]


def test_a_change_that_cannot_be_sent_leaves_the_kernel_is_counted_and_done_when_it_can(rig: Rig) -> None:
    rig.send(*first_lists(service(), a_slice([slice_endpoint()])))
    until(lambda: rig.loop.health().ready)
    before, held = metric(FAILURES, ip_family="IPv4"), rig.held(ENDPOINTS)

    rig.shrink(socket.SO_SNDBUF)
    rig.send(Events(tuple(endpoints(MANY))))
    until(lambda: not rig.loop.health().healthy and metric(FAILURES, ip_family="IPv4") > before + 1)

    assert rig.held(ENDPOINTS) == held
    rig.grow(socket.SO_SNDBUF)
    until(lambda: rig.loop.health().healthy)
    assert rig.held(ENDPOINTS) == MANY


def test_a_change_whose_answer_found_no_room_is_read_back_and_right(rig: Rig) -> None:
    ips = [IP(f"10.96.{number // 250}.{number % 250 + 1}") for number in range(MANY)]
    many = [service(f"default/web-{number}", cluster_ips=(ip,)) for number, ip in enumerate(ips)]
    slices = [a_slice([slice_endpoint()], f"{one.name}-1", service=one.name) for one in many]
    rig.send(*first_lists(*many, *slices))
    until(lambda: rig.loop.health().ready)
    before = metric(FAILURES, ip_family="IPv4")
    assert rig.held(PORTS) == MANY

    rig.shrink(socket.SO_RCVBUF)
    rig.send(Events(tuple(Changed(Kind.SERVICE, one.name, None) for one in many[1:])))
    until(lambda: metric(FAILURES, ip_family="IPv4") > before)
    until(lambda: rig.held(PORTS) == 1)
    rig.grow(socket.SO_RCVBUF)

    rig.send(Events(tuple(endpoints(2))))
    until(lambda: rig.loop.health().healthy)
    assert rig.held(PORTS) == 1
