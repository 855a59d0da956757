"""Which addresses of the node NodePorts answer on (kube-proxy's nodePortAddresses)."""

import ipaddress
from collections.abc import Iterable

from endpointslice.addresses import family_of
from endpointslice.types import IP, Family, Node
from proxy.planner.settings import PRIMARY


def choose_node_addresses(
    wanted: Iterable[str], node: Node | None, host: frozenset[IP], own: tuple[IP, ...] = ()
) -> frozenset[IP]:
    """`primary`: of each family the one in `own`, else the Node object's first; the host's own where both have none.

    Networks: the Node's and the host's addresses inside them. Loopback is never served: a packet to 127.0.0.1 can't be
    sent on to another host, and kube-proxy's nftables mode leaves it out as well.
    """
    of_node = (*own, *(node.addresses if node is not None else ()))
    if PRIMARY in wanted:
        return _primary(of_node) or _primary(sorted(host, key=lambda ip: (family_of(ip), ip)))
    networks = [ipaddress.ip_network(cidr) for cidr in wanted]
    return frozenset(ip for ip in {*of_node, *host} if any(_inside(ip, network) for network in networks))


def _primary(addresses: Iterable[IP]) -> frozenset[IP]:
    first: dict[Family, IP] = {}
    for ip in addresses:
        if not _is_loopback(ip):
            first.setdefault(family_of(ip), ip)
    return frozenset(first.values())


def _inside(ip: IP, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    return not _is_loopback(ip) and ipaddress.ip_address(ip) in network


def _is_loopback(ip: IP) -> bool:
    return ip.startswith("127.") or ip == "::1"
