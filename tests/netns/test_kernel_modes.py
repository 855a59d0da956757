"""Packets through the ruleset in other settings than the usual: what masquerades, what a node port is; SCTP; ping."""

import select
import socket
import struct
from collections.abc import Iterator

import pytest

from e2e.world.clients import Outcome, Target, probe
from e2e.world.cluster import World
from e2e.world.hosts import NodeSpec, PodSpec
from e2e.world.netns import run_in, write_sysctls
from endpointslice.addresses import pack_ip
from endpointslice.types import IP, Family, Protocol
from proxy.kernel.netlink import NftKernel
from proxy.kernel.ruleset import SetId, SetName
from proxy.planner.keys import pack_node_port, pack_range, pack_target, pack_vip
from tests.netns.north import VIPS, Elements, plan_north, put_service, vip

pytestmark = pytest.mark.netns

CLIENTS = ("client-n", "north-1", "outside")
PODS = (
    PodSpec("web-n", "north-1"),
    PodSpec("web-s", "south-1"),
    PodSpec("client-n", "north-1", ()),
    PodSpec("client-s", "south-1", ()),
)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World("modes", (NodeSpec("north-1", "north"), NodeSpec("south-1", "south"))) as built:
        built.add_pods(PODS)
        built.route_outside(["10.96.0.0/16", "fd00:96::/32"], "north-1")
        write_sysctls(
            built.host("north-1").netns, {"ipv4/icmp_msgs_per_sec": "100000", "ipv4/icmp_msgs_burst": "100000"}
        )
        yield built


@pytest.fixture
def kernel(world: World) -> Iterator[NftKernel]:
    with run_in(world.host("north-1").netns, NftKernel) as opened:
        yield opened


@pytest.fixture
def elements(world: World) -> Elements:
    return plan_north(world)


def sources_at(world: World, client: str, target: Target) -> dict[str, str]:
    """The source that each server sees of one client's connections."""
    (tally,) = probe(world, {client: [target]})[client]
    assert set(tally.outcomes) == {Outcome.ANSWERED}
    return dict(tally.seen.keys())


def test_masquerade_all_hides_local_pods_too(world: World, kernel: NftKernel, elements: Elements) -> None:
    elements[SetId(Family.IPV4, SetName.CLUSTER_IP_SOURCES)] = {}
    kernel.install(elements)

    seen = sources_at(world, "client-n", Target("tcp", vip(*VIPS["cluster IP"], Family.IPV4), 80, 24))

    assert seen == {"web-n": "10.244.1.1", "web-s": "172.30.0.11"}


@pytest.mark.parametrize("client", ["client-n", "outside"])
def test_without_a_detector_nobody_is_masqueraded_at_a_cluster_ip(
    world: World, kernel: NftKernel, elements: Elements, client: str
) -> None:
    elements[SetId(Family.IPV4, SetName.LOCAL_PODS)] = {}
    elements[SetId(Family.IPV4, SetName.CLUSTER_IP_SOURCES)] = {pack_range("0.0.0.0/0"): b""}
    kernel.install(elements)

    seen = sources_at(world, client, Target("tcp", vip(*VIPS["cluster IP, hairpin"], Family.IPV4), 80, 4))

    assert seen == {"web-n": world.host(client).ipv4}


def test_without_a_detector_pods_are_outside_a_local_vip(world: World, kernel: NftKernel, elements: Elements) -> None:
    elements[SetId(Family.IPV4, SetName.LOCAL_PODS)] = {}
    elements[SetId(Family.IPV4, SetName.CLUSTER_IP_SOURCES)] = {pack_range("0.0.0.0/0"): b""}
    kernel.install(elements)

    seen = sources_at(world, "client-n", Target("tcp", vip(*VIPS["external, Local"], Family.IPV4), 80, 24))

    assert seen == {"web-n": world.host("client-n").ipv4}


def test_a_cluster_ips_port_is_not_masqueraded_for_being_another_services_node_port(
    world: World, kernel: NftKernel, elements: Elements
) -> None:
    address = vip(*VIPS["cluster IP"], Family.IPV4)
    target = pack_target(IP(world.host("web-s").ipv4), 8080)
    put_service(elements, Family.IPV4, pack_vip(address, Protocol.TCP, 30080), [target], "")
    kernel.install(elements)

    assert sources_at(world, "client-n", Target("tcp", address, 30080, 4)) == {"web-s": world.host("client-n").ipv4}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("family", Family)
def test_an_external_ip_that_is_the_nodes_own_refuses_without_endpoints(
    world: World, kernel: NftKernel, elements: Elements, client: str, family: Family
) -> None:
    """Decided in the input hook, where packets to the node's own addresses go."""
    node = world.host("north-1")
    address = node.ipv4 if family is Family.IPV4 else node.ipv6
    for protocol in (Protocol.TCP, Protocol.UDP):
        elements.put(family, SetName.NO_ENDPOINT_PORTS, pack_vip(IP(address), protocol, 8888), b"drop")
        elements.put(family, SetName.NO_ENDPOINT_PORTS, pack_vip(IP(address), protocol, 8889), b"goto refuse")
    kernel.install(elements)

    tallies = probe(world, {client: [Target("tcp", address, port, 2, 0.5) for port in (8888, 8889)]})[client]

    assert [dict(tally.outcomes) for tally in tallies] == [{Outcome.TIMED_OUT: 2}, {Outcome.REFUSED: 2}]


def test_who_was_translated_is_not_refused_for_what_else_has_the_endpoints_address(
    world: World, kernel: NftKernel, elements: Elements
) -> None:
    web = IP(world.host("web-n").ipv4)
    elements.put(Family.IPV4, SetName.NO_ENDPOINT_PORTS, pack_vip(web, Protocol.TCP, 8080), b"goto refuse")
    kernel.install(elements)

    targets = [Target("tcp", address, port, 2) for address, port in ((web, 8080), (vip(1, 2, Family.IPV4), 80))]
    direct, translated = probe(world, {"client-n": targets})["client-n"]

    assert (dict(direct.outcomes), dict(translated.outcomes)) == ({Outcome.REFUSED: 2}, {Outcome.ANSWERED: 2})


def test_an_address_that_is_not_the_nodes_has_no_node_ports(
    world: World, kernel: NftKernel, elements: Elements
) -> None:
    elements[SetId(Family.IPV4, SetName.NODE_ADDRESSES)] = {pack_ip(IP(world.host("web-s").ipv4)): b""}
    kernel.install(elements)

    (tally,) = probe(world, {"outside": [Target("tcp", world.host("north-1").ipv4, 30080, 2)]})["outside"]

    assert tally.outcomes == {Outcome.REFUSED: 2}


# SCTP: no sockets of it in many kernels, so packets are made by hand (RFC 9260: header, INIT chunk, CRC32c).


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _bit in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def sctp_init(source_port: int, port: int) -> bytes:
    chunk = struct.pack("!BBHIIHHI", 1, 0, 20, 0x01020304, 65536, 1, 1, 0x05060708)
    header = struct.pack("!HHI", source_port, port, 0)
    return header + struct.pack("<I", crc32c(header + bytes(4) + chunk)) + chunk


@pytest.mark.parametrize(
    ("frontend", "source"),
    [
        pytest.param(("10.96.2.1", 80), "10.244.1.1", id="an eTP Cluster VIP, masqueraded"),
        pytest.param(("10.96.2.2", 80), "172.30.0.200", id="an eTP Local VIP, source kept"),
        pytest.param(("172.30.0.11", 30080), "10.244.1.1", id="an eTP Cluster node port, masqueraded"),
    ],
)
def test_sctp_is_translated_too(
    world: World, kernel: NftKernel, elements: Elements, frontend: tuple[str, int], source: str
) -> None:
    target = [pack_target(IP(world.host("web-n").ipv4), 8080)]
    for address in ("10.96.2.1", "10.96.2.2"):
        put_service(elements, Family.IPV4, pack_vip(IP(address), Protocol.SCTP, 80), target, "")
    put_service(elements, Family.IPV4, pack_node_port(Protocol.SCTP, 30080), target, "node_port_")
    elements.put(Family.IPV4, SetName.MASQUERADE_PORTS, pack_vip(IP("10.96.2.1"), Protocol.SCTP, 80))
    elements.put(Family.IPV4, SetName.MASQUERADE_NODE_PORTS, pack_node_port(Protocol.SCTP, 30080))
    kernel.install(elements)

    def open_raw() -> socket.socket:
        return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_SCTP)

    with run_in(world.host("web-n").netns, open_raw) as server, run_in(world.outside.netns, open_raw) as client:
        client.sendto(sctp_init(40000, frontend[1]), (frontend[0], 0))
        assert select.select([server], [], [], 2)[0]
        packet, (seen, _) = server.recvfrom(2048)

    assert (seen, struct.unpack_from("!H", packet, 22)[0]) == (source, 8080)


@pytest.mark.parametrize(
    ("address", "answer"),
    [
        pytest.param("10.96.1.1", (3, 3), id="a ClusterIP is unreachable"),
        pytest.param("10.96.1.99", None, id="an address that nobody has is silent"),
        pytest.param("172.30.0.11", (0, 0), id="the node answers for itself"),
    ],
)
def test_ping(
    world: World, kernel: NftKernel, elements: Elements, address: str, answer: tuple[int, int] | None
) -> None:
    kernel.install(elements)
    request = struct.pack("!BBHHH", 8, 0, 0xF7FE, 0, 1)  # echo request, its checksum

    def ping() -> tuple[int, int] | None:
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
            raw.sendto(request, (address, 0))
            if not select.select([raw], [], [], 0.5)[0]:
                return None
            packet = raw.recv(2048)
            return packet[20], packet[21]

    assert run_in(world.outside.netns, ping) == answer
