"""An announcer asks the gateway by an echo from a load-balancer address: the answer reaches it, and no one else.

No host has the address, so a kernel that forwarded the answer would ask the LAN for its own node's address.
"""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from e2e.world.cluster import World
from e2e.world.hosts import CLUSTER_CIDRS, Host, NodeSpec, PodSpec
from e2e.world.netns import command_in, run_in, run_ip
from endpointslice.types import CIDR, IP, Family, Node, NodeName, Protocol, ServicePort, SlicePort
from proxy.announcer.echo import Echo, Macs, pack_request, parse_reply
from proxy.announcer.ethernet import Drop, parse_frame, parse_mac
from proxy.announcer.packets import PacketSocket
from proxy.planner.settings import Settings
from tests.builders import a_slice, service, slice_endpoint
from tests.netns.planned import PlannedNode

pytestmark = pytest.mark.netns

PORT = ServicePort("http", Protocol.TCP, 80, 30080)
NODE = NodeName("north-1")
SERVICES = {Family.IPV4: IP("172.30.0.240"), Family.IPV6: IP("fd00:172:30::f0")}
NOBODYS = {Family.IPV4: IP("172.30.0.241"), Family.IPV6: IP("fd00:172:30::f1")}
ECHO_ID = 4711
_PATIENCE_S = 60.0
_LOOK_S = 0.05
_FORWARDED_S = 0.5  # what the kernel forwards, it does at once


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World("echoes", [NodeSpec("north-1", "north")]) as built:
        built.add_pods([PodSpec("web", "north-1")])
        lines = [
            f"neigh replace {ip} lladdr {_mac(built.host('north-1'))} dev br0 nud permanent"
            for ip in (*SERVICES.values(), *NOBODYS.values())
        ]
        run_ip({built.lan.netns: lines})  # as after an announcement
        yield built


@pytest.fixture(scope="module", autouse=True)
def node(world: World) -> Iterator[PlannedNode]:
    """The node serves the Service's addresses."""
    host, web = world.host("north-1"), world.host("web")
    planned = PlannedNode(host.netns, Settings(NODE, tuple(map(CIDR, CLUSTER_CIDRS))))
    planned.put(Node(NODE, addresses=(IP(host.ipv4), IP(host.ipv6))))
    ports = (SlicePort(PORT.name, PORT.protocol, 8080),)
    pieces = [
        a_slice(
            [slice_endpoint(web.ipv4 if family is Family.IPV4 else web.ipv6, node=NODE)],
            f"default/web-{family.lower()}",
            family=family,
            ports=ports,
        )
        for family in Family
    ]
    cluster_ips = (IP("10.96.1.1"), IP("fd00:96:1::1"))
    vips = tuple(SERVICES.values())
    planned.put(service(type="LoadBalancer", ports=(PORT,), cluster_ips=cluster_ips, load_balancer_ips=vips), *pieces)
    yield planned
    planned.close()


@pytest.mark.parametrize("family", Family)
def test_the_answer_to_a_services_address_reaches_the_announcer_and_ends_there(world: World, family: Family) -> None:
    assert ask_gateway(world, SERVICES[family])

    time.sleep(_FORWARDED_S)
    assert neighbours(world, SERVICES[family]) == ""


@pytest.mark.parametrize("family", Family)
def test_the_answer_to_an_address_of_no_service_goes_its_way(world: World, family: Family) -> None:
    assert ask_gateway(world, NOBODYS[family])

    assert wait_for(lambda: neighbours(world, NOBODYS[family]))  # the kernel looks for whose it is


@pytest.mark.parametrize("family", Family)
def test_the_nodes_own_echoes_are_answered(world: World, family: Family) -> None:
    host, lan = world.host("north-1"), world.lan
    own, gateway = (host.ipv4, lan.ipv4) if family is Family.IPV4 else (host.ipv6, lan.ipv6)

    assert ask_gateway(world, IP(own))
    assert run_in(host.netns, lambda: ping(gateway))


def ask_gateway(world: World, source: IP) -> bool:
    """Whether an echo from the address, by a frame of our own, is answered to us."""
    host, lan = world.host("north-1"), world.lan
    gateway = IP(lan.ipv6 if ":" in source else lan.ipv4)
    own, to = parse_mac(_mac(host)), parse_mac(_mac(lan, "br0"))
    assert own is not None
    assert to is not None
    sock = run_in(host.netns, lambda: PacketSocket("eth0", ECHO_ID))
    try:
        sock.send(pack_request(Echo(source, gateway, ECHO_ID, 1), Macs(own, to)))
        return wait_for(lambda: _answered(sock, source))
    finally:
        sock.close()


def _answered(sock: PacketSocket, source: IP) -> bool:
    captured = sock.receive()
    if captured is None:
        return False
    frame = parse_frame(captured.data)
    reply = frame if isinstance(frame, Drop) else parse_reply(frame)
    return isinstance(reply, Echo) and reply.destination == source


def ping(ip: str) -> bool:
    """Whether the kernel's own echo is answered."""
    is_v6 = ":" in ip
    kind, protocol = (socket.AF_INET6, socket.IPPROTO_ICMPV6) if is_v6 else (socket.AF_INET, socket.IPPROTO_ICMP)
    header = b"\x80\x00\x00\x00" if is_v6 else b"\x08\x00\xe9\xfe"  # the checksum; IPv6's is the kernel's work
    with socket.socket(kind, socket.SOCK_RAW, protocol) as sock:
        sock.settimeout(_PATIENCE_S)
        sock.sendto(header + b"\x0e\x00\x00\x01", (ip, 0))
        while True:
            data, (sender, *_rest) = sock.recvfrom(2048)
            if sender == ip and (data[0] == 129 if is_v6 else data[20] == 0):
                return True


def neighbours(world: World, ip: IP) -> str:
    """What the node's kernel knows of the address on the LAN, or tries to."""
    command = command_in(world.host("north-1").netns, ["ip", "neigh", "show", "to", ip, "dev", "eth0"])
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def wait_for(look: Callable[[], object]) -> bool:
    """Whether it comes."""
    until_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until_s:
        if look():
            return True
        time.sleep(_LOOK_S)
    return False


def _mac(host: Host, link: str = "eth0") -> str:
    command = command_in(host.netns, ["ip", "-o", "link", "show", link])
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return text.partition("link/ether ")[2][: len("00:00:00:00:00:00")]
