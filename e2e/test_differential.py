"""closeby does what kube-proxy does: random worlds, new ones each time, and the same fate for every probe."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from random import SystemRandom

import pytest

from e2e.cluster.kernel import nft
from e2e.differential.generate import make_world
from e2e.differential.judge import confirm, find_disagreements
from e2e.differential.model import EndpointSpec, PortSpec, ServiceSpec, SlicePortSpec, SliceSpec, State, World
from e2e.differential.places import LOCAL_PODS, POD_IPS, SERVERS_NODE, cluster_ip, endpoint_pool
from e2e.differential.report import Difference, describe, write_difference
from e2e.differential.rig import Rig, run_rig
from e2e.differential.run import Runner
from e2e.differential.targets import list_probes
from e2e.differential.wanted import find_wanted

pytestmark = pytest.mark.e2e

WORLDS = 50
ENOUGH_S = 80.0  # fewer worlds will do on a busy machine


@pytest.fixture(scope="module")
def rig(kube_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with run_rig(kube_binary, tmp_path_factory.mktemp("diff")) as running:
        yield running


@pytest.fixture(scope="module")
def runner(rig: Rig) -> Runner:
    return Runner(rig)


def test_random_worlds_meet_the_same_fate_as_with_kube_proxy(runner: Runner, tmp_path: Path) -> None:
    first = SystemRandom().randrange(1_000_000)
    print(f"seeds from {first}: python -m e2e.differential --seed {first}")
    deadline = time.monotonic() + ENOUGH_S

    for seed in range(first, first + WORLDS):
        difference = runner.judge(make_world(seed))

        assert difference is None, report(tmp_path, difference)
        if time.monotonic() > deadline:
            break
    print(f"{runner.counts.worlds} worlds, {runner.counts.probes} probes")


def report(folder: Path, difference: Difference) -> str:
    return f"{describe(difference)}{write_difference(folder, difference)}"


def test_a_proxy_that_lost_its_rules_is_found_out(rig: Rig, runner: Runner) -> None:
    state = next(state for seed in range(100) for state in make_world(seed).states if is_rich(state))
    closeby = rig.sides[0]
    probes = list_probes(state)[:200]
    assert runner.judge(World(0, (state,))) is None

    os.kill(closeby.proxy.pid, signal.SIGSTOP)
    try:
        nft(closeby.netns, "delete", "table", "ip", "closeby")
        suspects = find_disagreements(rig, probes)
        found = confirm(rig, [suspect.probe for suspect in suspects][:5])
    finally:
        os.kill(closeby.proxy.pid, signal.SIGCONT)

    assert found
    assert all(":" not in one.probe.target.ip for one in found)


def test_a_connection_whose_packet_is_lost_stays_lost_however_long_one_waits(rig: Rig, runner: Runner) -> None:
    itself = EndpointSpec(POD_IPS[0][0])  # without a nodeName: kube-proxy's packets to it are lost
    others = [EndpointSpec(ip, SERVERS_NODE) for ip in endpoint_pool(ipv6=False).remote[:5]]
    piece = SliceSpec("v4-0", is_ipv6=False, ports=(SlicePortSpec("", "TCP", 8080),), endpoints=(itself, *others))
    web = ServiceSpec("web", "ClusterIP", (cluster_ip(1, ipv6=False),), (PortSpec("", "TCP", 80),), (piece,))
    state = State("za", (web,))
    assert runner.judge(World(0, (state,))) is None
    probe = next(one for one in list_probes(state) if one.client == LOCAL_PODS[0] and one.target.candidates == 6)

    found = confirm(rig, [probe])

    assert [("timed-out" in one.closeby, "timed-out" in one.peer) for one in found] == [(False, True)]
    assert find_wanted([state], found[0])


def is_rich(state: State) -> bool:
    """Whether some Service has ready endpoints everywhere, reached under any policy."""
    return any(
        service.internal_policy == "Cluster"
        and ":" not in service.cluster_ips[0]
        and any(one.ready and not one.terminating for p in service.slices if not p.is_ipv6 for one in p.endpoints)
        for service in state.services
    )
