"""Who lives in a world, and at which addresses: every address follows from a node's and a pod's number.

LAN      172.30.0.0/24    fd00:172:30::/64        .1 the bridge, .10+N node N, .200 the outside client
node N   10.244.N.0/24    fd00:10:244:N::/64      .1 the node's end of every pod's link, .2 and up the pods
"""

from typing import NamedTuple

LAN_IPV4_LENGTH = 24
LAN_IPV6_LENGTH = 64
CLUSTER_CIDRS = ("10.244.0.0/16", "fd00:10:244::/56")
MOST_NODES = 99
MOST_PODS = 250  # a node; one number is one /32
_OUTSIDE = 200


class NodeSpec(NamedTuple):
    """A node to build."""

    name: str
    zone: str


class PodSpec(NamedTuple):
    """A pod to build on a node; each port is served as `protocol:number`. No ports: no server, a mere client."""

    name: str
    node: str
    ports: tuple[str, ...] = ("tcp:8080", "udp:8080")


class Host(NamedTuple):
    """A namespace with its two addresses on its first link, `eth0`."""

    name: str
    netns: str  # as `ip netns` lists it
    ipv4: str
    ipv6: str


class Node(NamedTuple):
    """A node."""

    host: Host
    number: int
    zone: str

    @property
    def pod_cidrs(self) -> tuple[str, str]:
        """The ranges of the node's pods, IPv4 and IPv6."""
        return f"10.244.{self.number}.0/24", f"fd00:10:244:{self.number:x}::/64"

    @property
    def gateways(self) -> tuple[str, str]:
        """What the node's pods route through, IPv4 and IPv6."""
        return f"10.244.{self.number}.1", f"fd00:10:244:{self.number:x}::1"


class Pod(NamedTuple):
    """A pod on a node; `number` is unique on the node and never used twice."""

    host: Host
    number: int
    node: str
    ports: tuple[str, ...]


def plan_lan(netns: str) -> Host:
    """The namespace of the bridge, which is everyone's default gateway and forwards nothing."""
    return Host("lan", netns, "172.30.0.1", "fd00:172:30::1")


def plan_outside(netns: str) -> Host:
    """The client on the LAN that is no node and no pod."""
    return Host("outside", netns, f"172.30.0.{_OUTSIDE}", f"fd00:172:30::{_OUTSIDE:x}")


def plan_node(spec: NodeSpec, netns: str, number: int) -> Node:
    """Node `number`, 1 and up. ValueError above MOST_NODES."""
    if not 1 <= number <= MOST_NODES:
        raise ValueError(f"a world has 1 to {MOST_NODES} nodes, not {number}")
    return Node(Host(spec.name, netns, f"172.30.0.{10 + number}", f"fd00:172:30::{10 + number:x}"), number, spec.zone)


def plan_pod(spec: PodSpec, netns: str, node: Node, number: int) -> Pod:
    """Pod `number` of the node, 1 and up. ValueError above MOST_PODS."""
    if not 1 <= number <= MOST_PODS:
        raise ValueError(f"a node has room for {MOST_PODS} pods, not {number}")
    ipv4 = f"10.244.{node.number}.{1 + number}"
    ipv6 = f"fd00:10:244:{node.number:x}::{1 + number:x}"
    return Pod(Host(spec.name, netns, ipv4, ipv6), number, spec.node, spec.ports)
