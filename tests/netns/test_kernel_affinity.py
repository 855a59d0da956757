"""Session affinity in packets: one binding over all addresses of a Service port, and when it ends."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import product

import pytest

from e2e.controlplane.waiting import wait_for
from e2e.world.clients import Target, probe
from e2e.world.cluster import World
from e2e.world.hosts import CLUSTER_CIDRS, NodeSpec, PodSpec
from endpointslice.types import (
    CIDR,
    IP,
    Family,
    Node,
    NodeName,
    Protocol,
    Service,
    ServicePort,
    Slice,
    SlicePort,
    TrafficPolicy,
)
from proxy.kernel.affinities import name_affinity
from proxy.kernel.change import Change
from proxy.planner.settings import Detect, Settings
from tests.builders import a_slice, service, slice_endpoint
from tests.netns.kernel_space import Space
from tests.netns.planned import PlannedNode

pytestmark = pytest.mark.netns

NODES = (NodeSpec("north-1", "north"), NodeSpec("south-1", "south"))
SERVERS = {"web-n": "north-1", "web-m": "north-1", "web-s": "south-1"}
CLIENTS = ("client-n", "north-1", "outside")
PORTS = (ServicePort("http", Protocol.TCP, 80, 30080), ServicePort("dns", Protocol.UDP, 80, 30080))
CLUSTER_IPS = (IP("10.96.1.1"), IP("fd00:96:1::1"))
VIPS = (IP("10.96.2.1"), IP("fd00:96:2::1"))
TRIES = 12
BY_ADDRESS = Settings(NodeName("north-1"), tuple(map(CIDR, CLUSTER_CIDRS)))
BY_INTERFACE = Settings(NodeName("north-1"), detect=Detect.INTERFACE_NAME_PREFIX, interface="pod")


def sticky(**fields: object) -> Service:
    """A Service with every kind of frontend."""
    plain = service(
        type="LoadBalancer", ports=PORTS, cluster_ips=CLUSTER_IPS, load_balancer_ips=VIPS, affinity_timeout_s=10800
    )
    return service(**{name: getattr(plain, name) for name in plain.__struct_fields__ if name != "name"} | fields)


class Rig:
    """Two nodes; the tables are north-1's, and everyone's packets to Services go through it."""

    def __init__(self, world: World, settings: Settings) -> None:
        self.world = world
        self.host = world.host("north-1")
        self.node = PlannedNode(self.host.netns, settings)
        self.node.put(Node(NodeName("north-1"), addresses=(IP(self.host.ipv4), IP(self.host.ipv6))))

    def close(self) -> None:
        self.node.close()

    def slices(self, *servers: str) -> list[Slice]:
        """These servers behind the Service, in both families."""
        ports = tuple(SlicePort(port.name, port.protocol, 8080) for port in PORTS)
        found = []
        for family in Family:
            ips = [(getattr(self.world.host(name), family.lower()), SERVERS[name]) for name in servers]
            endpoints = [slice_endpoint(ip, node=NodeName(node)) for ip, node in ips]
            found.append(a_slice(endpoints, f"default/web-{family.lower()}", family=family, ports=ports))
        return found

    def put(self, of: Service, *servers: str) -> Change:
        return self.node.put(of, *self.slices(*servers))

    def targets(self, protocol: str, family: Family) -> tuple[Target, Target, Target]:
        """The ClusterIP, the load balancer's address and the NodePort."""
        at = list(Family).index(family)
        node_ip = getattr(self.host, family.lower())
        return (
            Target(protocol, CLUSTER_IPS[at], 80),
            Target(protocol, VIPS[at], 80),
            Target(protocol, node_ip, 30080),
        )

    def ask(self, client: str, target: Target, tries: int = TRIES) -> Counter[str]:
        """Who answered, one try after the other; nobody stands as ""."""
        (tally,) = probe(self.world, {client: [target._replace(tries=tries, timeout_s=4.0)]})[client]
        return tally.answers + Counter({"": tally.failed})

    def bound_to(self, client: str, target: Target) -> str:
        """The one server that answers the client there."""
        answered = self.ask(client, target)
        assert len(answered) == 1, f"{client} at {target}: {dict(answered)}, and {self.bindings()}"
        return next(iter(answered))

    def bindings(self, protocol: Protocol = Protocol.TCP) -> str:
        """What nft lists of the IPv4 map of bindings."""
        name = name_affinity("default/web", PORTS[protocol is Protocol.UDP].name, protocol).decode()
        return Space(self.host.netns).list_text(f"map ip closeby affinity_{name}")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World("affinity", NODES) as built:
        built.add_pods([*(PodSpec(name, node) for name, node in SERVERS.items()), PodSpec("client-n", "north-1", ())])
        built.route_outside(["10.96.0.0/16", "fd00:96::/32"], "north-1")
        yield built


@pytest.fixture
def rig(world: World) -> Iterator[Rig]:
    """The Service with all servers and a long time-out."""
    with closing(Rig(world, BY_ADDRESS)) as opened:
        opened.put(sticky(), *SERVERS)
        yield opened


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_meets_one_server_at_every_address_of_the_service_port(
    rig: Rig, client: str, protocol: str, family: Family
) -> None:
    cluster_ip, vip, node_port = rig.targets(protocol, family)
    first = rig.ask(client, vip, tries=1)

    for target in (cluster_ip, vip, node_port):
        assert rig.ask(client, target) == dict.fromkeys(first, TRIES)


def test_ports_and_clients_have_bindings_of_their_own(rig: Rig) -> None:
    bound = set()
    for _round in range(12):
        rig.node.kernel.install({})  # forgets all bindings
        rig.node.restart()
        for client, protocol in product(("client-n", "outside"), ("tcp", "udp")):
            bound.add((client, protocol, rig.bound_to(client, rig.targets(protocol, Family.IPV4)[0])))
        if len(bound) == 12:
            break

    assert len(bound) > 4  # three servers, and 4 ** -12 for all alike


def test_a_binding_ends_after_its_time(rig: Rig) -> None:
    rig.put(sticky(affinity_timeout_s=1), *SERVERS)
    target = rig.targets("tcp", Family.IPV4)[0]
    assert rig.ask("outside", target, tries=1)[""] == 0
    outside = rig.world.outside.ipv4
    assert f"{outside} expires" in rig.bindings()

    wait_for(lambda: outside not in rig.bindings(), "the binding ended")


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_a_client_whose_server_left_the_list_gets_another_for_good(rig: Rig, protocol: str) -> None:
    target = rig.targets(protocol, Family.IPV4)[1]
    old = rig.bound_to("outside", target)

    rig.put(sticky(), *(SERVERS.keys() - {old}))  # its pod lives on
    healing = rig.ask("outside", target, tries=2)
    new = rig.bound_to("outside", target)
    rig.put(sticky(), *SERVERS)

    assert old not in healing
    assert healing[""] == (1 if protocol == "udp" else 0)  # TCP sends its SYN again
    assert {rig.bound_to("outside", target) for target in rig.targets(protocol, Family.IPV4)} == {new}


def test_affinity_is_switched_off_and_on_and_forgets(rig: Rig) -> None:
    target = rig.targets("tcp", Family.IPV4)[0]
    rig.bound_to("outside", target)

    rig.put(sticky(affinity_timeout_s=None), *SERVERS)
    off = rig.ask("outside", target, tries=60)
    rig.put(sticky(), *SERVERS)

    assert set(off) == set(SERVERS)
    assert "elements" not in rig.bindings()
    assert rig.bound_to("outside", target) in SERVERS


def test_another_time_out_leaves_bindings(rig: Rig) -> None:
    target = rig.targets("tcp", Family.IPV4)[0]
    server = rig.bound_to("outside", target)

    rig.put(sticky(affinity_timeout_s=7), *SERVERS)

    assert rig.bound_to("outside", target) == server
    assert "timeout 7s" in rig.bindings()


def test_a_restart_writes_nothing_and_leaves_bindings(rig: Rig) -> None:
    bound = {protocol: rig.bound_to("outside", rig.targets(protocol, Family.IPV6)[0]) for protocol in ("tcp", "udp")}

    change = rig.node.restart()

    assert change == Change({})
    assert bound == {protocol: rig.bound_to("outside", rig.targets(protocol, Family.IPV6)[0]) for protocol in bound}


def test_clients_keep_their_servers_when_the_tables_are_replaced_after_an_edit_by_others(rig: Rig) -> None:
    targets = {(name, family): rig.targets(name, family)[0] for name, family in product(("tcp", "udp"), Family)}
    bound = {(client, key): rig.bound_to(client, target) for client, (key, target) in product(CLIENTS, targets.items())}
    Space(rig.host.netns).nft("flush chain ip closeby services\nadd rule ip6 closeby refuse accept\n")

    rig.node.mend()

    # 3 ** -12 for all alike by chance
    assert bound == {(client, key): rig.bound_to(client, targets[key]) for client, key in bound}


@pytest.mark.parametrize("settings", [BY_ADDRESS, BY_INTERFACE], ids=["told by address", "told by interface"])
def test_under_policy_local_only_this_nodes_own_clients_are_bound_to_other_nodes_servers(
    world: World, settings: Settings
) -> None:
    with closing(Rig(world, settings)) as rig:
        vip, node_port = rig.targets("tcp", Family.IPV4)[1:]
        rig.put(sticky(), "web-s")
        assert rig.bound_to("outside", vip) == rig.bound_to("client-n", vip) == "web-s"

        rig.put(sticky(external_traffic_policy=TrafficPolicy.LOCAL), *SERVERS)

        assert rig.bound_to("client-n", vip) == rig.bound_to("client-n", node_port) == "web-s"
        here = rig.bound_to("outside", vip)
        assert here in {"web-n", "web-m"}
        assert rig.bound_to("outside", node_port) == here


def test_a_service_that_goes_leaves_nothing_of_it(rig: Rig) -> None:
    rig.bound_to("outside", rig.targets("tcp", Family.IPV4)[0])

    rig.node.delete(sticky())

    listed = Space(rig.host.netns).list_text("table ip closeby")
    assert not [line for line in listed.splitlines() if "sticky_" in line or "affinity_" + "0" in line]
    assert set(rig.ask("outside", rig.targets("tcp", Family.IPV4)[0]._replace(timeout_s=0.5), tries=2)) == {""}
