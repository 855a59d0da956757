"""Who asks whom in the demo: every Service from every node's client, and what shows something more."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from e2e.demo.cast import Offer, client_pod
from e2e.demo.shop import EVERYWHERE, VIP_AT_EAST_1, VIP_AT_WEST_2
from e2e.world.clients import Target
from e2e.world.cluster import World

OUTSIDE_ROUTES = {  # what the outside client sends through which node, as if that node announced it
    "east-1": (VIP_AT_EAST_1, "10.96.0.20", "fd00:10:96::14"),
    "west-2": (VIP_AT_WEST_2,),
}
THIS_NODE, FROM_OUTSIDE = "this-node", "outside"


class Visit(NamedTuple):
    """One client at one address of a Service."""

    service: str
    who: str  # for people: "pod on east-1"
    client: str  # the host that connects
    node: str  # whose rules decide
    origin: str  # as the plan's `from` has it: this-node or outside
    kind: str  # of frontend: ClusterIP, LoadBalancerIP, NodePort
    target: Target  # how often and how long to wait is set when the promise is known


def list_visits(offer: Offer, world: World) -> list[Visit]:
    """Every visit to the Service, those of one client together."""
    visits = [visit for node in EVERYWHERE for visit in visit_from_node(offer, world, node)]
    if offer.name == "shop/web":
        visits += _visit_ips(offer, ("host of east-1", "east-1", "east-1", THIS_NODE))
        visits += _visit_ips(offer, ("outside, through east-1", "outside", "east-1", FROM_OUTSIDE))
    if offer.name == "kube-system/dns":
        visits += _visit_ips(offer, ("its own pod on east-1", "dns-east1", "east-1", THIS_NODE))
    if offer.load_balancer_ips:
        visits += [visit_vip(offer, node, ip) for node, ip in (("east-1", VIP_AT_EAST_1), ("west-2", VIP_AT_WEST_2))]
    if offer.spec.get("type") == "NodePort":
        visits += _visit_node_ports(offer, world, ("outside, through west-1", "outside", "west-1", FROM_OUTSIDE))
    return visits


def visit_from_node(offer: Offer, world: World, node: str) -> Iterator[Visit]:
    """The node's client pod at the Service's most interesting addresses: its VIP or NodePorts, else its ClusterIPs."""
    person = (f"pod on {node}", client_pod(node).name, node, THIS_NODE)
    if offer.load_balancer_ips:
        target = Target(offer.ports[0].protocol.lower(), VIP_AT_EAST_1, offer.ports[0].port)
        yield Visit(offer.name, *person, "LoadBalancerIP", target)
    elif offer.spec.get("type") == "NodePort":
        yield from _visit_node_ports(offer, world, person)
    else:
        yield from _visit_ips(offer, person)


def visit_vip(offer: Offer, node: str, ip: str) -> Visit:
    """The outside client at a load balancer's address, through the node that it is routed to."""
    target = Target(offer.ports[0].protocol.lower(), ip, offer.ports[0].port)
    return Visit(offer.name, f"outside, through {node}", "outside", node, FROM_OUTSIDE, "LoadBalancerIP", target)


def _visit_ips(offer: Offer, person: tuple[str, str, str, str]) -> Iterable[Visit]:
    for port in offer.ports:
        for ip in offer.cluster_ips:
            yield Visit(offer.name, *person, "ClusterIP", Target(port.protocol.lower(), ip, port.port))


def _visit_node_ports(offer: Offer, world: World, person: tuple[str, str, str, str]) -> Iterable[Visit]:
    host = world.host(person[2])
    for port in offer.ports:
        for ip in (host.ipv4, host.ipv6):
            yield Visit(offer.name, *person, "NodePort", Target(port.protocol.lower(), ip, port.node_port))
