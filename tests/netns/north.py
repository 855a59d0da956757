"""The elements of node north-1, written by hand as a planner would, so that tests of the rules test nothing else."""

from collections.abc import Mapping
from typing import NamedTuple

from e2e.world.cluster import World
from endpointslice.addresses import pack_ip
from endpointslice.types import IP, Family, Protocol
from proxy.kernel.ruleset import SetId, SetName, address_bytes
from proxy.planner.keys import pack_index, pack_node_port, pack_range, pack_target, pack_vip

CLIENTS = ("client-n", "client-s", "north-1", "outside")
PICK_SIZES = (1, 2, 3, 5, 8, 64)
BOTH = frozenset({"web-n", "web-s"})
LOCAL = frozenset({"web-n"})
NODE_PORTS = {
    "node port, Cluster": 30080,
    "node port, Local": 30090,
    "node port, refused": 30070,
    "node port, dropped": 30060,
}


def vip(kind: int, number: int, family: Family) -> IP:
    """A Service's address; `kind` 1 is inside the ServiceCIDR."""
    return IP(f"10.96.{kind}.{number}" if family is Family.IPV4 else f"fd00:96:{kind}::{number:x}")


VIPS = {
    "cluster IP": (1, 1),
    "cluster IP, hairpin": (1, 2),
    "cluster IP, refused": (1, 3),
    "cluster IP, dropped": (1, 4),
    "cluster IP, other port": (1, 1),
    "unallocated": (1, 99),
    "external, Cluster": (2, 1),
    "external, Local": (2, 2),
}
DEAD = frozenset(
    {
        "cluster IP, refused",
        "cluster IP, dropped",
        "cluster IP, other port",
        "unallocated",
        "node port, refused",
        "node port, dropped",
    }
)


class Elements(dict[SetId, dict[bytes, bytes]]):
    """Elements by set."""

    def put(self, family: Family, name: SetName, key: bytes, data: bytes = b"") -> None:
        self.setdefault(SetId(family, name), {})[key] = data
        if name in {SetName.MASQUERADE_PORTS, SetName.HOST_MASQUERADE_PORTS, SetName.NODE_ADDRESSES}:
            address = key[: address_bytes(family)]
            self.setdefault(SetId(family, SetName.EXTERNAL_ADDRESSES), {})[address] = b""


class Backends(NamedTuple):
    """Addresses of the two servers in one family."""

    web_n: bytes
    web_s: bytes

    def choose(self, names: frozenset[str]) -> list[bytes]:
        return [self.web_n] if names == LOCAL else [self.web_n, self.web_s]


def put_service(elements: Elements, family: Family, key: bytes, endpoints: list[bytes], kind: str) -> None:
    """A frontend of one kind ("", "node_port_", "local_source_", ..) that picks among the endpoints."""
    ports = SetName("service_ports" if kind == "" else f"{kind}ports".replace("port_ports", "ports"))
    elements.put(family, ports, key, f"goto {kind}pick_{len(endpoints)}".encode())
    if kind.startswith("local_source_"):
        elements.put(family, SetName(ports.replace("local_", "by_")), key)
    for index, endpoint in enumerate(endpoints):
        elements.put(family, SetName(f"{kind}endpoints"), key + pack_index(index), endpoint)


def plan_north(world: World) -> Elements:
    """The elements of node north-1."""
    elements = Elements()
    for family in Family:
        hosts = {name: world.host(name) for name in (*CLIENTS, "web-n", "web-s")}
        ips = {name: IP(host.ipv4 if family is Family.IPV4 else host.ipv6) for name, host in hosts.items()}
        backends = Backends(pack_target(ips["web-n"], 8080), pack_target(ips["web-s"], 8080))
        plan_addresses(elements, family, ips)
        for protocol in (Protocol.TCP, Protocol.UDP):
            plan_vips(elements, family, protocol, backends)
            plan_node_ports(elements, family, protocol, backends)
            plan_every_pick(elements, family, protocol, backends)
    return elements


def plan_addresses(elements: Elements, family: Family, ips: Mapping[str, IP]) -> None:
    pods = pack_range("10.244.1.0/24" if family is Family.IPV4 else "fd00:10:244:1::/64")
    elements.put(family, SetName.LOCAL_PODS, pods)
    elements.put(family, SetName.CLUSTER_IP_SOURCES, pods)
    cidr = pack_range("10.96.1.0/24" if family is Family.IPV4 else "fd00:96:1::/112")
    elements.put(family, SetName.SERVICE_CIDRS, cidr)
    elements.put(family, SetName.NODE_ADDRESSES, pack_ip(ips["north-1"]))
    elements.put(family, SetName.HAIRPIN, pack_ip(ips["web-n"]) * 2)
    for number in (1, 2, 3, 4):
        elements.put(family, SetName.CLUSTER_IPS, pack_ip(vip(1, number, family)))


def plan_vips(elements: Elements, family: Family, protocol: Protocol, backends: Backends) -> None:
    def key(name: str) -> bytes:
        return pack_vip(vip(*VIPS[name], family), protocol, 80)

    put_service(elements, family, key("cluster IP"), backends.choose(BOTH), "")
    put_service(elements, family, key("cluster IP, hairpin"), backends.choose(LOCAL), "")
    put_service(elements, family, key("external, Cluster"), backends.choose(BOTH), "")
    elements.put(family, SetName.MASQUERADE_PORTS, key("external, Cluster"))
    put_service(elements, family, key("external, Local"), backends.choose(LOCAL), "")
    put_service(elements, family, key("external, Local"), backends.choose(BOTH), "local_source_")
    elements.put(family, SetName.HOST_MASQUERADE_PORTS, key("external, Local"))
    elements.put(family, SetName.NO_ENDPOINT_PORTS, key("cluster IP, refused"), b"goto refuse")
    elements.put(family, SetName.NO_ENDPOINT_PORTS, key("cluster IP, dropped"), b"drop")


def plan_node_ports(elements: Elements, family: Family, protocol: Protocol, backends: Backends) -> None:
    def key(name: str) -> bytes:
        return pack_node_port(protocol, NODE_PORTS[name])

    put_service(elements, family, key("node port, Cluster"), backends.choose(BOTH), "node_port_")
    elements.put(family, SetName.MASQUERADE_NODE_PORTS, key("node port, Cluster"))
    put_service(elements, family, key("node port, Local"), backends.choose(LOCAL), "node_port_")
    put_service(elements, family, key("node port, Local"), backends.choose(BOTH), "local_source_node_port_")
    elements.put(family, SetName.HOST_MASQUERADE_NODE_PORTS, key("node port, Local"))
    elements.put(family, SetName.NO_ENDPOINT_NODE_PORTS, key("node port, refused"), b"goto refuse")
    elements.put(family, SetName.NO_ENDPOINT_NODE_PORTS, key("node port, dropped"), b"drop")


def plan_every_pick(elements: Elements, family: Family, protocol: Protocol, backends: Backends) -> None:
    """Every kind of pick chain in several sizes; half of the endpoints of each are one server, half the other."""
    for size in PICK_SIZES:
        endpoints = [(backends.web_n, backends.web_s)[index % 2] for index in range(size)]
        key = pack_vip(vip(2, 100 + size, family), protocol, 80)
        put_service(elements, family, key, endpoints, "")
        elements.put(family, SetName.MASQUERADE_PORTS, key)  # else web-s would answer past this node
        put_service(elements, family, pack_vip(vip(3, 100 + size, family), protocol, 80), endpoints, "local_source_")
        elements.put(family, SetName.MASQUERADE_NODE_PORTS, pack_node_port(protocol, 31000 + size))
        put_service(elements, family, pack_node_port(protocol, 31000 + size), endpoints, "node_port_")
        put_service(elements, family, pack_node_port(protocol, 32000 + size), endpoints, "local_source_node_port_")
