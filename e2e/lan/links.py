"""Text for `ip -batch` and `nft -f` that builds the LAN; pure, one function for each namespace that it runs in."""

from collections.abc import Iterable

from e2e.lan.members import PREFIX_LENGTHS, TCP_PORT, UDP_PORT, VIPS, Family, Member, cold_addresses

Lines = tuple[str, ...]


def render_bridge(members: Iterable[Member]) -> Lines:
    """The bridge, which has no address. Multicast snooping would hold back neighbour discovery and heartbeats."""
    return (
        "link set lo up",
        "link add br0 type bridge mcast_snooping 0",
        "link set br0 up",
        *(line for member in members for line in render_port(member)),
    )


def render_port(member: Member) -> Lines:
    """A member's link, made from the bridge's end; run in the bridge's namespace."""
    return (
        f"link add {member.port} type veth peer name eth0 address {member.mac} netns {member.netns}",
        f"link set {member.port} master br0 up",
    )


def render_member(member: Member, router: Member) -> Lines:
    """A member's own end. The cold client has all the addresses that it asks as."""
    return ("link set lo up", *render_interface(member, router))


def render_interface(member: Member, router: Member) -> Lines:
    """`eth0` with its addresses and its routes."""
    more = (address for family in Family for address in cold_addresses(family)[1:]) if member.name == "cold" else ()
    own = (member.address(family) for family in Family)
    gateways = () if member == router else (router.address(Family.IPV4), router.address(Family.IPV6))
    return (
        *(_add_address(address) for address in (*own, *more)),
        "link set eth0 up",
        *(f"route add {'::/0' if ':' in gateway else 'default'} via {gateway}" for gateway in gateways),
    )


def render_service(node: Member) -> str:
    """The node's table, as a service proxy's: the VIP's ports lead to the node's own server, owner or not."""
    rules = "\n".join(
        f"        {word} daddr {VIPS[family]} meta l4proto {{ tcp, udp }} th dport {{ {TCP_PORT}, {UDP_PORT} }} "
        f"dnat to {node.address(family)}"
        for family, word in ((Family.IPV4, "ip"), (Family.IPV6, "ip6"))
    )
    return f"""table inet service {{
    chain prerouting {{
        type nat hook prerouting priority dstnat;
{rules}
    }}
}}
"""


def _add_address(address: str) -> str:
    ipv6 = ":" in address
    return f"address add {address}/{PREFIX_LENGTHS['ipv6' if ipv6 else 'ipv4']} dev eth0{' nodad' if ipv6 else ''}"
