"""As an operator I replace the pods of a UDP Service, and clients that keep their socket reach the new ones."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e.cluster.cluster import Cluster
from e2e.cluster.space import Space, target
from e2e.controlplane.waiting import wait_for
from e2e.world.clients import Target
from e2e.world.netns import run_in

pytestmark = pytest.mark.e2e

NODE = "north-1"
CLIENT = "client-north-1"
_ANSWER_S = 0.5  # where another try follows
_PATIENT_S = 10.0


class Flow:
    """One socket: the same flow for conntrack, whatever happens behind the Service."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def ask(self, patience_s: float = _ANSWER_S) -> str:
        """The pod that answers; "" if none does soon."""
        self._socket.settimeout(patience_s)
        try:
            self._socket.send(b"who?")
            return str(json.loads(self._socket.recv(2048))["name"])
        except OSError:
            return ""

    def await_answer(self, pod: str) -> None:
        """Go on asking until that pod answers. TimeoutError."""
        wait_for(lambda: self.ask() == pod, f"{pod} answers")


@contextmanager
def flow(cluster: Cluster, to: Target) -> Iterator[Flow]:
    netns = cluster.world.host(CLIENT).netns
    with run_in(netns, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sock:
        sock.connect((to.ip, to.port))
        yield Flow(sock)


def test_a_client_that_keeps_its_socket_follows_the_pods(cluster: Cluster, space: Space) -> None:
    (first,) = space.add_pods("dns", [NODE])
    dns = target(space.add_service("dns"), "udp")
    with flow(cluster, dns) as talk:
        talk.await_answer(first)

        (second,) = space.add_pods("dns", ["south-1"])
        space.set_ready(first, ready=False)  # it goes on answering whoever asks it

        talk.await_answer(second)


def test_a_client_from_before_the_service_is_served_when_it_appears(cluster: Cluster, space: Space) -> None:
    (first,) = space.add_pods("dns", [NODE])
    external = "203.0.113.53"  # of no Service yet: tracked on its way out, and never translated
    with flow(cluster, Target("udp", external, 80)) as talk:
        assert talk.ask() == ""

        space.add_service("dns", externalIPs=[external])

        talk.await_answer(first)


def test_a_restart_cuts_no_flow_and_mends_those_that_nobody_watched(cluster: Cluster, space: Space) -> None:
    (kept,) = space.add_pods("kept", [NODE])
    (first,) = space.add_pods("moved", [NODE])
    services = [target(space.add_service(name), "udp") for name in ("kept", "moved")]
    node = cluster.daemons[NODE]
    with flow(cluster, services[0]) as steady, flow(cluster, services[1]) as moving:
        steady.await_answer(kept)
        moving.await_answer(first)
        node.stop()
        (second,) = space.add_pods("moved", ["south-1"])
        space.set_ready(first, ready=False)

        node.start()

        moving.await_answer(second)
        assert [steady.ask(_PATIENT_S) for _ in range(10)] == [kept] * 10
