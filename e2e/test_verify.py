"""As an operator I look, before a move and after it, whether the node's tables do what closeby would choose."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from e2e.cluster.daemon import Ended, run_closeby
from e2e.cluster.kernel import nft
from e2e.controlplane.waiting import wait_for
from e2e.differential.apply import Applier
from e2e.differential.generate import make_world
from e2e.differential.kinds import Kind, list_kinds
from e2e.differential.model import EndpointSpec, PortSpec, ServiceSpec, SlicePortSpec, SliceSpec, State, World
from e2e.differential.places import NODE, ZONES, cluster_ip, endpoint_pool
from e2e.differential.rig import Rig, run_rig
from e2e.world.hosts import CLUSTER_CIDRS

pytestmark = pytest.mark.e2e

HEAL_S = 60.0
LOCAL, REMOTE = (endpoint_pool(ipv6=False).local[2], endpoint_pool(ipv6=False).remote[0])


class Node(NamedTuple):
    """The two copies of the node, each with its proxy."""

    rig: Rig
    applier: Applier
    folder: Path

    def verify(self, proxy: str, *flags: str) -> Ended:
        """The command beside that proxy."""
        netns = next(side.netns for side in self.rig.sides if side.name == proxy)
        source = ("--kubeconfig", str(self.folder / "closeby.kubeconfig"), f"--node={NODE}")
        return run_closeby(netns, "verify", *source, f"--cluster-cidr={','.join(CLUSTER_CIDRS)}", *flags)


@pytest.fixture(scope="module")
def node(kube_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("verify")
    with run_rig(kube_binary, folder) as rig:
        yield Node(rig, Applier(rig), folder)


def read_table(ended: Ended) -> dict[str, Any]:
    (table,) = json.loads(ended.output)["tables"]
    assert isinstance(table, dict)
    return table


def list_words(state: State) -> set[str]:
    """What the state's Services are, of all that they can be."""
    words: set[str] = set(list_kinds(World(0, (state,))))
    for service in state.services:
        words |= {service.type, f"internal {service.internal_policy}"}
        if service.type != "ClusterIP" or service.external_ips:
            words.add(f"external {service.external_policy}")
    return words


WANTED = {
    *("ClusterIP", "NodePort", "LoadBalancer"),
    *(f"{side} {policy}" for side in ("internal", "external") for policy in ("Cluster", "Local")),
    *(Kind.SCTP, Kind.DAEMON_SET, Kind.CLAIM, Kind.AFFINITY, Kind.SOURCE_RANGES, Kind.DUAL_STACK, Kind.TWICE),
}


def choose_seeds() -> list[int]:
    """A few worlds that have Services of each kind and policy."""
    missing = set(WANTED)
    seeds = []
    for seed in range(1000):
        words = list_words(make_world(seed).states[-1])
        if words & missing:
            missing -= words
            seeds.append(seed)
    assert not missing
    return seeds


@pytest.mark.parametrize("seed", choose_seeds())
def test_both_proxies_tables_agree_with_the_api(node: Node, seed: int) -> None:
    state = make_world(seed).states[-1]
    node.applier.apply(state)

    tables = {proxy: node.verify(proxy, "-o", "json", "--all") for proxy in ("closeby", "kube-proxy")}

    for proxy, ended in tables.items():
        table = read_table(ended)
        assert (ended.code, ended.error) == (0, ""), table
        assert table["table"] == proxy
        assert table["counts"]["same"] + table["counts"]["meant"] >= len(state.services)
    services = [{row["service"] for row in read_table(ended)["frontends"]} for ended in tables.values()]
    assert services[0] == services[1]


def test_what_closeby_means_to_do_otherwise_is_told_with_its_reason_and_is_no_fault(node: Node) -> None:
    node.applier.apply(State(ZONES[0], (make_service("PreferClose"),)))

    ended = node.verify("kube-proxy")

    assert ended.code == 0
    assert "other endpoints, as meant" in " ".join(ended.output.split())
    assert "1 otherwise as meant, 0 different" in ended.output


def make_service(distribution: str | None) -> ServiceSpec:
    """Two endpoints, one in the node's zone, and no hints."""
    endpoints = (EndpointSpec(LOCAL, NODE, ZONES[0], ready=True), EndpointSpec(REMOTE, "node-3", ZONES[1], ready=True))
    piece = SliceSpec("v4", False, (SlicePortSpec("http", "TCP", 8080),), endpoints)  # noqa: FBT003  # as the spec has it
    port = PortSpec("http", "TCP", 80)
    return ServiceSpec("web", "ClusterIP", (cluster_ip(7, ipv6=False),), (port,), (piece,), distribution=distribution)


@pytest.mark.parametrize(("proxy", "name"), [("kube-proxy", "service-ips"), ("closeby", "service_ports")])
def test_a_doctored_table_is_found_out_and_a_proxy_that_mends_it_is_believed(node: Node, proxy: str, name: str) -> None:
    node.applier.apply(State(ZONES[0], (make_service(None),)))
    side = next(side for side in node.rig.sides if side.name == proxy)
    with stopped(side.proxy.pid):
        nft(side.netns, "delete", "element", "ip", proxy, name, f"{{ {cluster_ip(7, ipv6=False)} . tcp . 80 }}")

        ended = node.verify(proxy)
        as_json = read_table(node.verify(proxy, "-o", "json"))

    assert (ended.code, ended.error) == (1, "")
    (row,) = (line.split() for line in ended.output.splitlines() if "/web" in line)
    assert (row[0], row[-1]) == ("differential/web:http", "missing")
    assert [one["differences"] for one in as_json["frontends"]] == [["missing"]]
    assert as_json["frontends"][0]["expected"]["endpoints"] == sorted([f"{LOCAL}:8080", f"{REMOTE}:8080"])
    node.applier.apply(State(ZONES[0], ()))  # a change makes kube-proxy write; closeby has mended it by itself
    wait_for(lambda: node.verify(proxy).code == 0, f"{proxy} has mended its table", timeout_s=HEAL_S)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """The process does nothing until the end of the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_table_that_is_not_there_is_an_error(node: Node) -> None:
    ended = node.verify("closeby", "--table=kube-proxy")

    assert (ended.code, ended.output) == (1, "")
    assert ended.error.startswith("closeby: there is no nftables table kube-proxy here")
