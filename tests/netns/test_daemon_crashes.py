"""A daemon that is killed again and again while it writes: the kernel is right after each start, and no one is cut off.

CLOSEBY_CRASHES kills (30 by default) at random moments; CLOSEBY_SEED repeats a run.
"""

import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from e2e.cluster.connection import ask, connect
from e2e.cluster.daemon import Daemon, Site
from e2e.demo.folder import replace_file
from e2e.world.clients import Outcome, Target, probe
from e2e.world.cluster import World
from e2e.world.hosts import CLUSTER_CIDRS, NodeSpec, PodSpec
from e2e.world.netns import run_in
from endpointslice.snapshot import EMPTY, apply_events
from endpointslice.types import CIDR, IP, Kind, NodeName
from proxy.kernel.change import Change
from proxy.kernel.netlink import NftKernel
from proxy.planner.planner import NOTHING, Moment, Planner
from proxy.planner.settings import Settings
from proxy.sources.manifests import load_folder
from tests.builders import Json, object_json, service_json, slice_json

pytestmark = [pytest.mark.netns, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("CLOSEBY_CRASHES", "30"))
SEED = os.environ.get("CLOSEBY_SEED", "")
NODE = "north-1"
STEADY = Target("tcp", "10.96.0.10", 80, tries=3)
NODE_PORT = Target("tcp", "172.30.0.11", 30080, tries=3)
MOVING = 200  # Services that change with every edit
START_S = 0.6  # within which a kill often comes before the first write
MOST_WRITES = 12  # between a start and its kill
SETTINGS = Settings(NodeName(NODE), cluster_cidrs=tuple(CIDR(cidr) for cidr in CLUSTER_CIDRS))


class Rig(NamedTuple):
    """A node with a daemon on a folder of manifests."""

    world: World
    folder: Path
    daemon: Daemon
    draw: random.Random

    def write(self, name: str, items: list[Json]) -> None:
        replace_file(self.folder / name, json.dumps({"kind": "List", "items": items}))

    def edit(self) -> None:
        """One change of many Services: endpoints, ports and kinds at random, and some are gone."""
        items: list[Json] = []
        for number in range(self.draw.randrange(MOVING)):
            name = f"moving/web-{number}"
            kind = self.draw.choice(["ClusterIP", "NodePort"])
            port = {"name": "http", "port": self.draw.choice([80, 81]), "nodePort": 31000 + number}
            ip = f"10.96.1.{number + 1}"
            items.append(service_json(name, type=kind, clusterIP=ip, clusterIPs=[ip], ports=[port]))
            ends = [{"addresses": [f"10.244.9.{self.draw.randint(1, 250)}"]} for _ in range(self.draw.randrange(6))]
            labels = {"kubernetes.io/service-name": f"web-{number}"}
            items.append(slice_json(f"{name}-1", labels=labels, endpoints=ends))
        self.write("moving.json", items)

    def writes(self) -> int:
        """How often the kernel was written to so far."""
        return self.daemon.log_file.read_text().count('"sync_done"')

    def run_for_a_while(self) -> None:
        """Edit at speed until the moment of the next kill: while the daemon starts, or some writes after that."""
        if self.draw.random() < 0.3:
            time.sleep(self.draw.uniform(0, START_S))
            return
        self.daemon.await_ready()
        assert self.differing() == Change({})
        until = self.writes() + self.draw.randint(1, MOST_WRITES)
        while self.writes() < until:
            self.edit()
            time.sleep(self.draw.uniform(0.02, 0.12))
        time.sleep(self.draw.uniform(0, 0.1))

    def differing(self) -> Change | None:
        """What a fresh plan of the folder would change in the kernel; None: our tables aren't even whole."""
        with run_in(self.world.host(NODE).netns, NftKernel) as kernel:
            installed = kernel.read()
        if installed is None:
            return None
        planner = Planner(SETTINGS)
        snapshot, _ = apply_events(EMPTY, load_folder(self.folder))
        planner.update(snapshot, NOTHING, Moment(installed.elements, frozenset(), 0.0))
        planner.desired.doubt(installed.elements)
        return planner.desired.pending(installed.elements)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    seed = SEED or str(random.randrange(2**32))
    print(f"CLOSEBY_SEED={seed}")  # noqa: T201  # shown when the test fails, and with -s
    with World("crash", [NodeSpec(NODE, "north"), NodeSpec("south-1", "south")]) as world:
        world.add_pods([PodSpec("web-n", NODE), PodSpec("web-s", "south-1"), PodSpec("client", NODE, ())])
        world.route_outside([STEADY.ip], NODE)
        folder = tmp_path / "manifests"
        folder.mkdir()
        daemon = Daemon(Site(NODE, world.host(NODE).netns, tmp_path), "--manifests", str(folder))
        made = Rig(world, folder, daemon, random.Random(seed))
        made.write("steady.json", list(steady_objects(world)))
        yield made
        daemon.kill()


def steady_objects(world: World) -> Iterator[Json]:
    """The node, and a Service that nobody edits."""
    addresses = [{"type": "InternalIP", "address": ip} for ip in (world.host(NODE).ipv4, world.host(NODE).ipv6)]
    yield object_json(Kind.NODE, NODE, status={"addresses": addresses})
    yield service_json(type="NodePort", ports=[{"name": "http", "port": 80, "nodePort": NODE_PORT.port}])
    yield slice_json(endpoints=[{"addresses": [world.host(pod).ipv4]} for pod in ("web-n", "web-s")])


def test_the_kernel_is_right_after_each_start_and_no_connection_is_cut(rig: Rig) -> None:
    assert IP(NODE_PORT.ip) == rig.world.host(NODE).ipv4
    rig.daemon.start()
    rig.daemon.await_ready()
    clients = (("client", STEADY), ("outside", STEADY), ("outside", NODE_PORT), (NODE, STEADY))
    connections = [connect(rig.world.host(client), target) for client, target in clients]
    answers = [ask(connection) for connection in connections]
    for _kill in range(KILLS):
        rig.run_for_a_while()
        rig.daemon.kill()
        assert [ask(connection) for connection in connections] == answers
        tallies = probe(rig.world, {"client": [STEADY], "outside": [NODE_PORT]})
        assert {end for (tally,) in tallies.values() for end in tally.outcomes} == {Outcome.ANSWERED}
        if rig.draw.random() < 0.5:  # else what was written last may not have been read
            rig.edit()
        rig.daemon.start()
    rig.daemon.await_ready()
    assert rig.differing() == Change({})
    print(f"{KILLS} kills in {rig.writes()} writes")  # noqa: T201
    for connection in connections:
        connection.close()
