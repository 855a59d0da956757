"""The little cluster of e2e.world: what its clients see must be the truth, since every other story rests on it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from e2e.cluster.kernel import nft
from e2e.controlplane.waiting import wait_for
from e2e.world import netns
from e2e.world.clients import Outcome, Tally, Target, Traffic, probe
from e2e.world.cluster import World
from e2e.world.hosts import NodeSpec, PodSpec

pytestmark = pytest.mark.netns

NODES = (NodeSpec("north-1", "north"), NodeSpec("south-1", "south"))
STRETCH_S = 1.0  # in which some of 250 tries are made, however busy the machine
MANY = 3000  # the first is there, and the last comes seconds later
PODS = (
    PodSpec("web-n", "north-1"),
    PodSpec("web-s", "south-1", ("tcp:8080", "udp:53")),
    PodSpec("client-n", "north-1", ()),
    PodSpec("client-s", "south-1", ()),
)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World("test", NODES) as built:
        built.add_pods(PODS)
        yield built


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
@pytest.mark.parametrize(("protocol", "port"), [("tcp", 8080), ("udp", 53)])
@pytest.mark.parametrize("client", ["client-n", "client-s", "web-n", "north-1"])
def test_a_pod_on_any_node_answers_with_its_name_and_the_clients_own_address(
    world: World, client: str, protocol: str, port: int, family: str
) -> None:
    server = world.host("web-s")

    tally = ask(world, client, Target(protocol, getattr(server, family), port, tries=50))

    assert tally.outcomes == {Outcome.ANSWERED: 50}
    assert tally.answers == {"web-s": 50}
    assert tally.sources == {getattr(world.host(client), family): 50}


@pytest.mark.parametrize("address", ["172.30.0.11", "fd00:172:30::b"])
def test_the_outside_client_reaches_nodes_but_knows_no_way_to_pods(world: World, address: str) -> None:
    pod = world.host("web-n")

    to_node = ask(world, "outside", Target("tcp", address, 1, tries=3))
    to_pod = ask(
        world, "outside", Target("tcp", pod.ipv6 if ":" in address else pod.ipv4, 8080, tries=3, timeout_s=0.3)
    )

    assert to_node.outcomes == {Outcome.REFUSED: 3}
    assert to_pod.outcomes == {Outcome.TIMED_OUT: 3}


def test_the_outside_client_reaches_what_is_routed_through_a_node(world: World) -> None:
    pod = world.host("web-s")
    world.route_outside([pod.ipv4, pod.ipv6], "north-1")

    tallies = probe(world, {"outside": [Target("tcp", ip, 8080, tries=20) for ip in (pod.ipv4, pod.ipv6)]})["outside"]

    assert [tally.sources for tally in tallies] == [{world.outside.ipv4: 20}, {world.outside.ipv6: 20}]


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_a_port_that_nobody_listens_on_refuses(world: World, protocol: str) -> None:
    tally = ask(world, "client-n", Target(protocol, world.host("web-s").ipv4, 9, tries=10))

    assert tally.outcomes == {Outcome.REFUSED: 10}


@pytest.mark.parametrize(
    ("where", "flags", "clients_port", "resent"),
    [("web-s", "syn", "sport", 1), ("client-n", "syn | ack", "dport", 1), ("web-s", "fin", "sport", 0)],
)
def test_a_connection_says_how_often_its_syn_was_sent_again(
    world: World, where: str, flags: str, clients_port: str, resent: int
) -> None:
    """Of each the first packet with those flags alone is lost; none is a FIN alone."""
    target = Target("tcp", world.host("web-s").ipv4, 8080)
    rule = f"tcp flags == {flags} tcp {clients_port} != @seen add @seen {{ tcp {clients_port} }} drop"
    lossy = "set seen { type inet_service; size 64; flags dynamic; };"
    lossy += f"chain loses {{ type filter hook prerouting priority raw; {rule}; }};"
    nft(world.host(where).netns, f"table ip lossy {{ {lossy} }}")
    with Traffic(world, {"client-n": [target]}, interval_s=0.2) as traffic:
        time.sleep(STRETCH_S)
        records = traffic.stop()["client-n"]
    nft(world.host(where).netns, "delete table ip lossy")

    assert {(r.outcome, r.resent) for r in records} == {(Outcome.ANSWERED, resent)}


def test_hundreds_of_connections_from_every_client_at_once_are_all_counted(world: World) -> None:
    targets = [Target(p, world.host("web-s").ipv4, port, tries=300) for p, port in (("tcp", 8080), ("udp", 53))]

    tallies = probe(world, dict.fromkeys(("client-n", "client-s"), targets))

    assert [t.answers for host in tallies.values() for t in host] == [{"web-s": 300}] * 4


def test_a_server_that_dies_under_traffic_shows_as_the_moment_from_which_all_is_refused(world: World) -> None:
    world.add_pods([PodSpec("mortal", "south-1")])
    target = Target("tcp", world.host("mortal").ipv4, 8080)
    with Traffic(world, {"client-n": [target]}) as traffic:
        time.sleep(STRETCH_S)
        died = time.monotonic()
        world.stop_server("mortal")
        dead = time.monotonic()
        time.sleep(STRETCH_S)
        records = traffic.stop()["client-n"]

    assert {r.outcome for r in records if r.began + r.took_s < died} == {Outcome.ANSWERED}
    assert {r.outcome for r in records if r.began > dead} == {Outcome.REFUSED}
    assert len([r for r in records if r.began > dead]) > 5


def test_a_removed_pod_is_gone_and_its_name_is_free_again(world: World) -> None:
    world.add_pods([PodSpec("brief", "north-1")])
    before = world.host("brief")
    world.remove_pods(["brief"])
    gone = ask(world, "client-s", Target("tcp", before.ipv4, 8080, tries=3, timeout_s=0.3))
    world.add_pods([PodSpec("brief", "south-1")])
    again = ask(world, "client-s", Target("tcp", world.host("brief").ipv4, 8080, tries=3))
    world.remove_pods(["brief"])

    assert Outcome.ANSWERED not in gone.outcomes
    assert again.answers == {"brief": 3}


def test_leaving_a_world_leaves_no_namespace_and_no_process() -> None:
    with World("test", NODES) as world:
        world.add_pods(PODS)
        names = netns.list_namespaces(world.prefix)
        inhabitants = netns.list_inhabitants(names)

    assert len(names) == len(PODS) + len(NODES) + 2
    assert len(inhabitants) == 2
    assert netns.list_namespaces(world.prefix) == []
    wait_for(lambda: not any(map(is_running, inhabitants)), "what ran in it has ended")


def test_the_root_namespace_sees_no_link_of_a_world() -> None:
    before = Path("/proc/self/net/dev").read_text().count(":")
    with World("test", NODES):
        assert Path("/proc/self/net/dev").read_text().count(":") == before


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)],
    ids=["Ctrl-C", "SIGTERM", "SIGKILL, then the next world sweeps"],
)
def test_a_world_that_is_stopped_leaves_nothing_behind(number: signal.Signals, code: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _WAITING_WORLD], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout
        prefix = process.stdout.readline().strip()
        inhabitants = netns.list_inhabitants(netns.list_namespaces(prefix))
        os.kill(process.pid, number)
        if number is signal.SIGKILL:
            wait_for(lambda: not is_running(process.pid), "it is dead, and not reaped: nobody sweeps yet")
            assert netns.list_namespaces(prefix) != []
        process.wait(60)

    if number is signal.SIGKILL:
        netns.sweep_namespaces()  # another process's tests may have been first
    assert process.returncode == code
    assert len(inhabitants) == 2
    assert netns.list_namespaces(prefix) == []
    wait_for(lambda: not any(map(is_running, inhabitants)), "what ran in it has ended")


def test_two_that_remove_the_same_namespaces_do_not_disturb_each_other() -> None:
    prefix = netns.unique_prefix("twice")
    names = [f"{prefix}{number}" for number in range(20)]
    netns.create_namespaces(names)
    with ThreadPoolExecutor() as threads:
        ends = [threads.submit(netns.remove_namespaces, names) for _ in range(4)]

    assert [end.exception() for end in ends] == [None] * 4
    assert netns.list_namespaces(prefix) == []


def test_who_is_interrupted_while_namespaces_are_made_makes_none_afterwards() -> None:
    with subprocess.Popen([sys.executable, "-c", _HASTY_WORLD], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout
        prefix = process.stdout.readline().strip()
        wait_for(lambda: netns.list_namespaces(prefix), "the first is there")
        process.send_signal(signal.SIGINT)
        made = int(process.stdout.readline())

    left = netns.list_namespaces(prefix)
    netns.remove_namespaces(left)
    assert len(left) == made < MANY


def test_an_error_inside_a_world_removes_it() -> None:
    with pytest.raises(KeyError), World("test", NODES) as world:
        world.add_pods([PodSpec("lost", "no-such-node")])

    assert netns.list_namespaces(world.prefix) == []


def ask(world: World, client: str, target: Target) -> Tally:
    """One client, one target."""
    (tally,) = probe(world, {client: [target]})[client]
    return tally


def is_running(pid: int) -> bool:
    """A process that nobody has reaped yet runs no more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


ROOT = Path(__file__).parents[2]
_HASTY_WORLD = f"""
import time
from e2e.world.netns import create_namespaces, list_namespaces, unique_prefix
prefix = unique_prefix("hasty")
print(prefix, flush=True)
try:
    create_namespaces([prefix + str(number) for number in range({MANY})])
except KeyboardInterrupt:
    print(len(list_namespaces(prefix)), flush=True)
    time.sleep(3)  # in which an `ip` that went on would make more
"""
_WAITING_WORLD = """
import sys, time
from e2e.world.cluster import World
from tests.netns.test_world import NODES, PODS
try:
    with World("test", NODES) as world:
        world.add_pods(PODS)
        print(world.prefix, flush=True)
        time.sleep(600)
except KeyboardInterrupt:
    sys.exit(130)
"""
