"""Packets through the ruleset: who answers, what source it sees, and who is refused or left waiting.

The rows are those of a comparison with kube-proxy v1.36 (nftables mode), packet by packet.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

from e2e.world.clients import Outcome, Tally, Target, probe
from e2e.world.cluster import World
from e2e.world.hosts import NodeSpec, PodSpec
from e2e.world.netns import run_in, run_ip, write_sysctls
from endpointslice.types import Family
from proxy.kernel.netlink import NftKernel
from tests.netns.north import BOTH, CLIENTS, DEAD, LOCAL, NODE_PORTS, PICK_SIZES, VIPS, plan_north, vip

pytestmark = pytest.mark.netns

NODES = (NodeSpec("north-1", "north"), NodeSpec("south-1", "south"))
PODS = (
    PodSpec("web-n", "north-1"),
    PodSpec("web-s", "south-1"),
    PodSpec("client-n", "north-1", ()),
    PodSpec("client-s", "south-1", ()),
)


TRIES = 24  # of two endpoints, one is missed once in eight million

Answers = Mapping[tuple[str, str, str, Family], Tally]


class Row(NamedTuple):
    """Who asks where, who answers, and whether they see the client's own address."""

    client: str
    frontend: str
    servers: frozenset[str]
    kept: bool


def target_of(world: World, frontend: str, protocol: str, family: Family) -> Target:
    """How clients reach a frontend."""
    node = world.host("north-1")
    dead = frontend in DEAD
    tries, timeout_s = (4, 0.6) if dead else (TRIES, 2.0)
    if frontend in NODE_PORTS:
        ip = node.ipv4 if family is Family.IPV4 else node.ipv6
        return Target(protocol, ip, NODE_PORTS[frontend], tries, timeout_s)
    port = 81 if frontend == "cluster IP, other port" else 80
    return Target(protocol, vip(*VIPS[frontend], family), port, tries, timeout_s)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World("traffic", NODES) as built:
        built.add_pods(PODS)
        ranges = ["10.96.0.0/16", "fd00:96::/32"]
        built.route_outside(ranges, "north-1")
        north, south = built.host("north-1"), built.host("south-1")
        write_sysctls(north.netns, {"ipv4/icmp_msgs_per_sec": "100000", "ipv4/icmp_msgs_burst": "100000"})
        run_ip({south.netns: [f"route add {ranges[0]} via {north.ipv4}", f"route add {ranges[1]} via {north.ipv6}"]})
        with run_in(north.netns, NftKernel) as kernel:
            kernel.install({})
            kernel.install(plan_north(built))
            yield built


@pytest.fixture(scope="module")
def answers(world: World) -> Answers:
    """Every client at every frontend, by TCP and UDP, over both families."""
    cells = [(f, p, family) for f in (*VIPS, *NODE_PORTS) for p in ("tcp", "udp") for family in Family]
    targets = [target_of(world, *cell) for cell in cells]
    found = probe(world, dict.fromkeys((*CLIENTS, "web-n"), targets))
    return {
        (client, *cell): tally for client, tallies in found.items() for cell, tally in zip(cells, tallies, strict=True)
    }


def sources(world: World, row: Row, family: Family) -> dict[str, str]:
    """The source that each server sees: the client's own, or the node's on the way to the server."""
    v4 = family is Family.IPV4
    if row.kept:
        own = world.host(row.client)
        return dict.fromkeys(row.servers, own.ipv4 if v4 else own.ipv6)
    north, gateways = world.host("north-1"), world.nodes["north-1"].gateways
    node = {"web-n": gateways[0 if v4 else 1], "web-s": north.ipv4 if v4 else north.ipv6}
    return {server: node[server] for server in row.servers}


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize(
    "row",
    [
        pytest.param(Row("client-n", "cluster IP", BOTH, kept=True), id="a local pod keeps its address at a ClusterIP"),
        pytest.param(Row("client-s", "cluster IP", BOTH, kept=False), id="a remote pod is masqueraded at a ClusterIP"),
        pytest.param(Row("north-1", "cluster IP", BOTH, kept=False), id="the host is masqueraded at a ClusterIP"),
        pytest.param(
            Row("outside", "cluster IP", BOTH, kept=False), id="a client outside is masqueraded at a ClusterIP"
        ),
        pytest.param(
            Row("web-n", "cluster IP, hairpin", LOCAL, kept=False), id="a pod that reaches itself is masqueraded"
        ),
        pytest.param(Row("client-n", "cluster IP, hairpin", LOCAL, kept=True), id="its neighbour is not"),
        pytest.param(
            Row("client-n", "external, Cluster", BOTH, kept=False), id="a local pod is masqueraded at a Cluster VIP"
        ),
        pytest.param(
            Row("client-s", "external, Cluster", BOTH, kept=False), id="a remote pod is masqueraded at a Cluster VIP"
        ),
        pytest.param(
            Row("north-1", "external, Cluster", BOTH, kept=False), id="the host is masqueraded at a Cluster VIP"
        ),
        pytest.param(
            Row("outside", "external, Cluster", BOTH, kept=False), id="a client outside is masqueraded at a Cluster VIP"
        ),
        pytest.param(
            Row("client-n", "external, Local", BOTH, kept=True), id="a local pod short-circuits a Local VIP as itself"
        ),
        pytest.param(
            Row("client-s", "external, Local", LOCAL, kept=True), id="a remote pod keeps its address at a Local VIP"
        ),
        pytest.param(
            Row("north-1", "external, Local", BOTH, kept=False), id="the host short-circuits a Local VIP masqueraded"
        ),
        pytest.param(
            Row("outside", "external, Local", LOCAL, kept=True), id="a client outside keeps its address at a Local VIP"
        ),
        pytest.param(
            Row("client-n", "node port, Cluster", BOTH, kept=False), id="a local pod is masqueraded at a node port"
        ),
        pytest.param(
            Row("client-s", "node port, Cluster", BOTH, kept=False), id="a remote pod is masqueraded at a node port"
        ),
        pytest.param(
            Row("north-1", "node port, Cluster", BOTH, kept=False), id="the host is masqueraded at a node port"
        ),
        pytest.param(
            Row("outside", "node port, Cluster", BOTH, kept=False), id="a client outside is masqueraded at a node port"
        ),
        pytest.param(
            Row("client-n", "node port, Local", BOTH, kept=True), id="a local pod short-circuits a Local node port"
        ),
        pytest.param(
            Row("client-s", "node port, Local", LOCAL, kept=True), id="a remote pod keeps its address at a Local one"
        ),
        pytest.param(
            Row("north-1", "node port, Local", BOTH, kept=False), id="the host short-circuits a Local one masqueraded"
        ),
        pytest.param(
            Row("outside", "node port, Local", LOCAL, kept=True), id="a client outside keeps its address at a Local one"
        ),
    ],
)
def test_who_answers_and_what_source_it_sees(
    world: World, answers: Answers, row: Row, protocol: str, family: Family
) -> None:
    tally = answers[row.client, row.frontend, protocol, family]

    assert tally.outcomes == {Outcome.ANSWERED: TRIES}
    assert dict(tally.seen.keys()) == sources(world, row, family)


@pytest.mark.parametrize(
    "cell",
    [(client, protocol, family) for client in CLIENTS for protocol in ("tcp", "udp") for family in Family],
    ids=str,
)
@pytest.mark.parametrize(
    ("frontend", "refused"),
    [
        pytest.param("cluster IP, refused", True, id="a ClusterIP without endpoints refuses"),
        pytest.param("cluster IP, dropped", False, id="one without local endpoints is silent"),
        pytest.param("cluster IP, other port", True, id="another port of a ClusterIP refuses"),
        pytest.param("unallocated", False, id="an address of the ServiceCIDR that nobody has is silent"),
        pytest.param("node port, refused", True, id="a node port without endpoints refuses"),
        pytest.param("node port, dropped", False, id="one without local endpoints is silent too"),
    ],
)
def test_who_is_refused_and_who_waits(
    answers: Answers, cell: tuple[str, str, Family], frontend: str, *, refused: bool
) -> None:
    client, protocol, family = cell
    expected = Outcome.REFUSED if refused else Outcome.TIMED_OUT
    if client == "north-1" and protocol == "udp" and frontend not in NODE_PORTS:
        expected = Outcome.UNREACHABLE  # a verdict in the output hook, which the sender is told as EPERM

    tally = answers[client, frontend, protocol, family]

    assert tally.outcomes == {expected: 4}


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize(
    ("client", "kind"),
    [
        ("outside", "pick"),
        ("client-n", "local_source_pick"),
        ("outside", "node_port_pick"),
        ("client-n", "local_source_node_port_pick"),
    ],
)
def test_every_pick_chain_serves(world: World, client: str, kind: str, protocol: str, family: Family) -> None:
    """On a base that was loaded twice; a chain compiled for the other protocol would be dead for one of them."""
    node = world.host("north-1")
    node_ip = node.ipv4 if family is Family.IPV4 else node.ipv6
    places: dict[str, list[tuple[str, int]]] = {
        "pick": [(vip(2, 100 + size, family), 80) for size in PICK_SIZES],
        "local_source_pick": [(vip(3, 100 + size, family), 80) for size in PICK_SIZES],
        "node_port_pick": [(node_ip, 31000 + size) for size in PICK_SIZES],
        "local_source_node_port_pick": [(node_ip, 32000 + size) for size in PICK_SIZES],
    }
    targets = [Target(protocol, ip, port, tries=TRIES) for ip, port in places[kind]]

    tallies = probe(world, {client: targets})[client]

    assert [dict(tally.outcomes) for tally in tallies] == [{Outcome.ANSWERED: TRIES}] * len(PICK_SIZES)
    assert [frozenset(tally.answers) for tally in tallies] == [LOCAL, *[BOTH] * (len(PICK_SIZES) - 1)]
