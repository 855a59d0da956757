"""Interfaces as wires: a wire is a subnet, as interfaces' names differ from node to node. No I/O."""

import ipaddress
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from endpointslice.types import IP
from proxy.l2.types import Channel

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_SMALLEST = {4: 31, 6: 127}  # prefixes: a longer one has no neighbours


class Interface(NamedTuple):
    """What the kernel says of an interface that has Ethernet's broadcasts and answers ARP."""

    name: str
    number: int  # ifindex
    mac: bytes
    carrier: bool
    addresses: tuple[tuple[IP, int], ...] = ()  # with the length of the prefix; none that is tentative


class Gateway(NamedTuple):
    """A default route."""

    interface: int
    address: IP


class WireLink(NamedTuple):
    """This node's end of a wire."""

    wire: Channel
    interface: str
    number: int  # ifindex
    mac: bytes
    carrier: bool
    own: IP  # our address there
    gateway: IP | None = None


def find_wires(
    interfaces: Iterable[Interface],
    gateways: Iterable[Gateway],
    named: Sequence[IP] = (),
    preferred: Collection[str] = (),
) -> Mapping[Channel, WireLink]:
    """Each subnet that we have an address in; of two interfaces in one, the first by name that has carrier.

    `named`: gateways that were given by hand; they come before default routes. `preferred`: names that come first.
    """
    routes = tuple(gateways)
    found: dict[Channel, WireLink] = {}
    for interface in sorted(interfaces, key=lambda one: (not one.carrier, one.name not in preferred, one.name)):
        for address, prefix in interface.addresses:
            network = _network(address, prefix)
            if network is None:
                continue
            wire = Channel(str(network))
            gateway = _gateway(network, interface.number, routes, named)
            _name, number, mac, carrier, _addresses = interface
            found.setdefault(wire, WireLink(wire, interface.name, number, mac, carrier, address, gateway))
    return found


def wire_of(ip: IP, wires: Iterable[Channel]) -> Channel | None:
    """The wire whose subnet the address is in, the smallest of several; None: none."""
    return _find_wire(ip, tuple(wires))


@lru_cache(maxsize=1024)  # asked for each datagram
def _find_wire(ip: IP, wires: tuple[Channel, ...]) -> Channel | None:
    address = ipaddress.ip_address(ip)
    best: Network | None = None
    for wire in wires:
        network = _parse(wire)
        if (
            address.version == network.version
            and address in network
            and (best is None or network.prefixlen > best.prefixlen)
        ):
            best = network
    return Channel(str(best)) if best is not None else None


@lru_cache(maxsize=1024)
def _parse(wire: Channel) -> Network:
    return ipaddress.ip_network(wire)


def _network(address: IP, prefix: int) -> Network | None:
    """None where there can be no neighbours, or only this link's own."""
    parsed = ipaddress.ip_address(address)
    if parsed.is_link_local or parsed.is_loopback or prefix > _SMALLEST[parsed.version]:
        return None
    return ipaddress.ip_network((address, prefix), strict=False)


def _gateway(network: Network, interface: int, routes: Iterable[Gateway], named: Sequence[IP]) -> IP | None:
    for given in named:
        address = ipaddress.ip_address(given)
        if address.version == network.version and address in network:
            return given
    for route in routes:
        address = ipaddress.ip_address(route.address)
        near = address.is_link_local and route.interface == interface
        if address.version == network.version and (near or address in network):
            return route.address
    return None
