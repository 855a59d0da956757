"""The text for `ip -batch` that joins the namespaces; pure, one function for each namespace that the lines run in.

Every veth is made from inside one namespace with its peer in another, so the root namespace never sees a link.
Pods hang on their node as under a point-to-point CNI: a /32 and a /128, a route to the gateway, and a default.
"""

from collections.abc import Iterable

from e2e.world.hosts import LAN_IPV4_LENGTH, LAN_IPV6_LENGTH, Host, Node, Pod

Lines = tuple[str, ...]


def render_lan(lan: Host, members: Iterable[Host]) -> Lines:
    """The bridge and a port for each member. No multicast snooping: it would hold back neighbour discovery.

    As the default gateway it swallows what it gets. It must be an IPv6 router all the same: a gateway that says in its
    neighbour advertisement that it is none loses its clients' default routes (RFC 4861 7.2.5).
    """
    return (
        "link set lo up",
        "link add br0 type bridge mcast_snooping 0",
        *_addresses(lan, "br0"),
        "link set br0 up",
        "route add blackhole default",
        "route add blackhole ::/0",
        *(line for number, member in enumerate(members, 1) for line in _port(f"port-{number}", member)),
    )


def render_member(member: Host, lan: Host) -> Lines:
    """A node's or the outside client's own end."""
    return (
        "link set lo up",
        *_addresses(member, "eth0"),
        "link set eth0 up",
        f"route add default via {lan.ipv4}",
        f"route add ::/0 via {lan.ipv6}",
    )


def render_routes_to_pods(node: Node, others: Iterable[Node]) -> Lines:
    """Static routes of a node to the other nodes' pods."""
    return tuple(
        f"route add {cidr} via {via}"
        for other in others
        if other.number != node.number
        for cidr, via in zip(other.pod_cidrs, (other.host.ipv4, other.host.ipv6), strict=True)
    )


def render_pod_link(node: Node, pod: Pod) -> Lines:
    """The node's end of a pod's link; run in the node's namespace."""
    link = f"pod-{pod.number}"
    ipv4_gateway, ipv6_gateway = node.gateways
    return (
        f"link add {link} type veth peer name eth0 netns {pod.host.netns}",
        f"address add {ipv4_gateway}/32 dev {link}",
        f"address add {ipv6_gateway}/128 dev {link} nodad",
        f"link set {link} up",
        f"route add {pod.host.ipv4}/32 dev {link}",
        f"route add {pod.host.ipv6}/128 dev {link}",
    )


def render_pod(node: Node, pod: Pod) -> Lines:
    """The pod's end; run in the pod's namespace, after `render_pod_link`."""
    ipv4_gateway, ipv6_gateway = node.gateways
    return (
        "link set lo up",
        f"address add {pod.host.ipv4}/32 dev eth0",
        f"address add {pod.host.ipv6}/128 dev eth0 nodad",
        "link set eth0 up",
        f"route add {ipv4_gateway}/32 dev eth0 scope link",
        f"route add default via {ipv4_gateway}",
        f"route add {ipv6_gateway}/128 dev eth0",
        f"route add ::/0 via {ipv6_gateway}",
    )


def _port(link: str, member: Host) -> Lines:
    return f"link add {link} type veth peer name eth0 netns {member.netns}", f"link set {link} master br0 up"


def _addresses(host: Host, link: str) -> Lines:
    return (
        f"address add {host.ipv4}/{LAN_IPV4_LENGTH} dev {link}",
        f"address add {host.ipv6}/{LAN_IPV6_LENGTH} dev {link} nodad",
    )
