"""loadBalancerSourceRanges in packets: who gets through to a load balancer's address, and who gets no answer."""

from collections.abc import Iterator

import pytest

from e2e.world.clients import Outcome, Target, probe
from e2e.world.cluster import World
from e2e.world.hosts import CLUSTER_CIDRS, NodeSpec, PodSpec
from e2e.world.netns import run_ip
from endpointslice.types import CIDR, IP, Family, Node, NodeName, Protocol, Service, ServicePort, SlicePort
from proxy.planner.settings import Settings
from tests.builders import a_slice, service, slice_endpoint
from tests.netns.planned import PlannedNode

pytestmark = pytest.mark.netns

PORTS = (ServicePort("http", Protocol.TCP, 80, 30080), ServicePort("dns", Protocol.UDP, 80, 30080))
CLUSTER_IPS = (IP("10.96.1.1"), IP("fd00:96:1::1"))
VIPS = (IP("10.96.2.1"), IP("10.96.2.2"), IP("fd00:96:2::1"))
EXTERNAL = IP("10.96.3.1")
OUTSIDE = ("172.30.0.200/32", "fd00:172:30::c8/128")
NODE = ("172.30.0.11/32", "fd00:172:30::b/128")
POD = "10.244.1.0/24"


def firewalled(*ranges: str) -> Service:
    return service(
        type="LoadBalancer",
        ports=PORTS,
        cluster_ips=CLUSTER_IPS,
        load_balancer_ips=VIPS,
        external_ips=(EXTERNAL,),
        source_ranges=tuple(map(CIDR, ranges)),
    )


class Rig:
    """One node whose Service has one server, asked by the node itself, a pod of it, and a client outside."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.host = world.host("north-1")
        self.node = PlannedNode(self.host.netns, Settings(NodeName("north-1"), tuple(map(CIDR, CLUSTER_CIDRS))))
        self.node.put(Node(NodeName("north-1"), addresses=(IP(self.host.ipv4), IP(self.host.ipv6))))

    def put(self, *ranges: str) -> None:
        ports = tuple(SlicePort(port.name, port.protocol, 8080) for port in PORTS)
        web = self.world.host("web")
        pieces = [
            a_slice(
                [slice_endpoint(getattr(web, family.lower()), node=NodeName("north-1"))],
                f"default/web-{family.lower()}",
                family=family,
                ports=ports,
            )
            for family in Family
        ]
        self.node.put(firewalled(*ranges), *pieces)

    def who_gets_in(self, ip: IP, protocol: str = "tcp", port: int = 80) -> set[str]:
        """The clients that are answered; all others must get no answer, or in the output hook an error at once."""
        target = Target(protocol, ip, port, tries=2, timeout_s=0.5)
        tallies = probe(self.world, {client: [target] for client in ("outside", "client", "north-1")})
        ends = {client: set(tally.outcomes) for client, (tally,) in tallies.items()}
        silent = {Outcome.TIMED_OUT, Outcome.UNREACHABLE}
        assert all(end == {Outcome.ANSWERED} or end <= silent for end in ends.values()), ends
        return {client for client, end in ends.items() if end == {Outcome.ANSWERED}}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World("ranges", [NodeSpec("north-1", "north")]) as built:
        built.add_pods([PodSpec("web", "north-1"), PodSpec("client", "north-1", ())])
        built.route_outside(["10.96.0.0/16", "fd00:96::/32"], "north-1")
        yield built


@pytest.fixture
def rig(world: World) -> Iterator[Rig]:
    opened = Rig(world)
    yield opened
    opened.node.close()


EVERYBODY = {"outside", "client", "north-1"}


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize(
    ("ranges", "ipv4", "ipv6"),
    [
        pytest.param((), EVERYBODY, EVERYBODY, id="no ranges"),
        pytest.param(OUTSIDE, {"outside"}, {"outside"}, id="the outside client in both families"),
        pytest.param(OUTSIDE[:1], {"outside"}, EVERYBODY, id="ranges of one family leave the other open"),
        pytest.param((POD, "fd00:10:244:1::/64"), {"client"}, {"client"}, id="the node's pods"),
        pytest.param(NODE, {"north-1"}, {"north-1"}, id="the node itself"),
        pytest.param(("172.30.0.0/24", "172.30.0.0/16"), {"outside", "north-1"}, EVERYBODY, id="ranges that overlap"),
        pytest.param(("0.0.0.0/0", "::/0"), EVERYBODY, EVERYBODY, id="everything"),
        pytest.param(("203.0.113.0/24", "2001:db8::/32"), set(), set(), id="nobody here"),
    ],
)
def test_who_reaches_a_load_balancers_address(
    rig: Rig, protocol: str, ranges: tuple[str, ...], ipv4: set[str], ipv6: set[str]
) -> None:
    rig.put(*ranges)

    for vip in VIPS:
        assert rig.who_gets_in(vip, protocol) == (ipv6 if ":" in vip else ipv4)


def test_every_other_frontend_is_open_to_everybody(rig: Rig) -> None:
    rig.put("203.0.113.0/24")

    assert rig.who_gets_in(VIPS[0]) == set()
    for ip, port in ((CLUSTER_IPS[0], 80), (EXTERNAL, 80), (IP(rig.host.ipv4), 30080)):
        assert rig.who_gets_in(ip, port=port) == EVERYBODY


def test_ranges_change_while_the_service_serves(rig: Rig) -> None:
    rig.put("203.0.113.0/24", POD)
    assert rig.who_gets_in(VIPS[0]) == {"client"}

    rig.put(*OUTSIDE)
    assert rig.who_gets_in(VIPS[0]) == {"outside"}
    assert not rig.node.restart().sets

    rig.put()
    assert rig.who_gets_in(VIPS[0]) == EVERYBODY


def test_a_node_that_has_the_address_itself_gets_in_where_its_own_address_would(rig: Rig) -> None:
    run_ip({rig.host.netns: [f"address add {VIPS[0]}/32 dev lo"]})
    try:
        rig.put(*NODE)
        assert "north-1" in rig.who_gets_in(VIPS[0])

        rig.put(*OUTSIDE)
        assert "north-1" not in rig.who_gets_in(VIPS[0])
    finally:
        run_ip({rig.host.netns: [f"address delete {VIPS[0]}/32 dev lo"]})
