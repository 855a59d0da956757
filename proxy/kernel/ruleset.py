"""The names and shapes of our two tables: every set and map, its key and data, and the chains that pick an endpoint.

`base.nft` beside this file is the ruleset's text; README.md draws the path of a packet through it.
Rules for this file: constants and pure functions only.
"""

import re
from collections.abc import Mapping
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import NamedTuple

from endpointslice.types import Family

TABLE = "closeby"  # the same name in both families
INTERFACE_BYTES = 16  # IFNAMSIZ


class SetName(StrEnum):
    """The sets and maps of each table, by their names in the kernel (`affinities` aside)."""

    SERVICE_PORTS = "service_ports"
    NODE_PORTS = "node_ports"
    LOCAL_SOURCE_PORTS = "local_source_ports"
    LOCAL_SOURCE_NODE_PORTS = "local_source_node_ports"
    ENDPOINTS = "endpoints"
    NODE_PORT_ENDPOINTS = "node_port_endpoints"
    LOCAL_SOURCE_ENDPOINTS = "local_source_endpoints"
    LOCAL_SOURCE_NODE_PORT_ENDPOINTS = "local_source_node_port_endpoints"
    NODE_ADDRESSES = "node_addresses"
    HAIRPIN = "hairpin"
    CLUSTER_IPS = "cluster_ips"
    SERVICE_CIDRS = "service_cidrs"
    LOCAL_PODS = "local_pods"
    CLUSTER_IP_SOURCES = "cluster_ip_sources"
    LOCAL_INTERFACES = "local_interfaces"
    CLUSTER_IP_INTERFACES = "cluster_ip_interfaces"
    EXTERNAL_ADDRESSES = "external_addresses"
    MASQUERADE_PORTS = "masquerade_ports"
    MASQUERADE_NODE_PORTS = "masquerade_node_ports"
    HOST_MASQUERADE_PORTS = "host_masquerade_ports"
    HOST_MASQUERADE_NODE_PORTS = "host_masquerade_node_ports"
    NO_ENDPOINT_PORTS = "no_endpoint_ports"
    NO_ENDPOINT_NODE_PORTS = "no_endpoint_node_ports"
    FIREWALLED_PORTS = "firewalled_ports"
    ALLOWED_SOURCES = "allowed_sources"
    BY_SOURCE_PORTS = "by_source_ports"
    BY_SOURCE_NODE_PORTS = "by_source_node_ports"
    BINDING_ADDRESSES = "binding_addresses"
    BINDING_PORTS = "binding_ports"
    AFFINITY_PORTS = "affinity_ports"
    AFFINITY_NODE_PORTS = "affinity_node_ports"
    LOCAL_SOURCE_AFFINITY_PORTS = "local_source_affinity_ports"
    LOCAL_SOURCE_AFFINITY_NODE_PORTS = "local_source_affinity_node_ports"
    RECORD_PORTS = "record_ports"
    RECORD_NODE_PORTS = "record_node_ports"
    FORGET_PORTS = "forget_ports"
    FORGET_NODE_PORTS = "forget_node_ports"
    BOUND_ENDPOINTS = "bound_endpoints"
    NODE_PORT_BOUND_ENDPOINTS = "node_port_bound_endpoints"
    LOCAL_SOURCE_BOUND_ENDPOINTS = "local_source_bound_endpoints"
    LOCAL_SOURCE_NODE_PORT_BOUND_ENDPOINTS = "local_source_node_port_bound_endpoints"
    AFFINITIES = "affinities"  # no set of the kernel's: each element is a map and three chains, see affinities.py


class SetId(NamedTuple):
    """One set or map of one of our tables."""

    family: Family
    name: SetName


class Field(Enum):
    """A part of an element's key, each padded to 4 bytes in the kernel."""

    ADDRESS = "address"  # 4 or 16 bytes, network order
    PROTOCOL = "protocol"  # 1 byte, IP protocol number, then 3 zero
    PORT = "port"  # 2 bytes, network order, then 2 zero
    INTERFACE = "interface"  # 16 bytes, its name and zeros (IFNAMSIZ)
    INDEX = "index"  # 4 bytes, the host's order: what numgen writes


class Data(Enum):
    """What an element of a set or map leads to."""

    NONE = "none"  # a plain set
    VERDICT = "verdict"
    ENDPOINT = "endpoint"  # address and port, for dnat
    OBJECTS = "objects"  # the element stands for a map and chains of its own


class Layout(NamedTuple):
    """The shape of one set or map."""

    key: tuple[Field, ...]
    data: Data = Data.NONE
    interval: bool = False  # our key ends in first + last value, inclusive
    counter: bool = False  # every element counts packets, which in a nat hook are new connections


_VIP = (Field.ADDRESS, Field.PROTOCOL, Field.PORT)
_NODE_PORT = (Field.PROTOCOL, Field.PORT)
_ADDRESS = (Field.ADDRESS,)
_TARGET = (Field.ADDRESS, Field.PORT)

LAYOUTS: Mapping[SetName, Layout] = MappingProxyType(
    {
        SetName.SERVICE_PORTS: Layout(_VIP, Data.VERDICT, counter=True),
        SetName.NODE_PORTS: Layout(_NODE_PORT, Data.VERDICT, counter=True),
        SetName.LOCAL_SOURCE_PORTS: Layout(_VIP, Data.VERDICT, counter=True),
        SetName.LOCAL_SOURCE_NODE_PORTS: Layout(_NODE_PORT, Data.VERDICT, counter=True),
        SetName.ENDPOINTS: Layout((*_VIP, Field.INDEX), Data.ENDPOINT),
        SetName.NODE_PORT_ENDPOINTS: Layout((*_NODE_PORT, Field.INDEX), Data.ENDPOINT),
        SetName.LOCAL_SOURCE_ENDPOINTS: Layout((*_VIP, Field.INDEX), Data.ENDPOINT),
        SetName.LOCAL_SOURCE_NODE_PORT_ENDPOINTS: Layout((*_NODE_PORT, Field.INDEX), Data.ENDPOINT),
        SetName.NODE_ADDRESSES: Layout(_ADDRESS),
        SetName.HAIRPIN: Layout((Field.ADDRESS, Field.ADDRESS)),
        SetName.CLUSTER_IPS: Layout(_ADDRESS),
        SetName.SERVICE_CIDRS: Layout(_ADDRESS, interval=True),
        SetName.LOCAL_PODS: Layout(_ADDRESS, interval=True),
        SetName.CLUSTER_IP_SOURCES: Layout(_ADDRESS, interval=True),
        SetName.LOCAL_INTERFACES: Layout((Field.INTERFACE,), interval=True),
        SetName.CLUSTER_IP_INTERFACES: Layout((Field.INTERFACE,), interval=True),
        SetName.EXTERNAL_ADDRESSES: Layout(_ADDRESS),
        SetName.MASQUERADE_PORTS: Layout(_VIP),
        SetName.MASQUERADE_NODE_PORTS: Layout(_NODE_PORT),
        SetName.HOST_MASQUERADE_PORTS: Layout(_VIP),
        SetName.HOST_MASQUERADE_NODE_PORTS: Layout(_NODE_PORT),
        SetName.NO_ENDPOINT_PORTS: Layout(_VIP, Data.VERDICT),
        SetName.NO_ENDPOINT_NODE_PORTS: Layout(_NODE_PORT, Data.VERDICT),
        SetName.FIREWALLED_PORTS: Layout(_VIP),
        SetName.ALLOWED_SOURCES: Layout((*_VIP, Field.ADDRESS), interval=True),
        SetName.BY_SOURCE_PORTS: Layout(_VIP),
        SetName.BY_SOURCE_NODE_PORTS: Layout(_NODE_PORT),
        SetName.BINDING_ADDRESSES: Layout(_ADDRESS),
        SetName.BINDING_PORTS: Layout(_NODE_PORT),
        SetName.AFFINITY_PORTS: Layout(_VIP, Data.VERDICT, counter=True),
        SetName.AFFINITY_NODE_PORTS: Layout(_NODE_PORT, Data.VERDICT, counter=True),
        SetName.LOCAL_SOURCE_AFFINITY_PORTS: Layout(_VIP, Data.VERDICT, counter=True),
        SetName.LOCAL_SOURCE_AFFINITY_NODE_PORTS: Layout(_NODE_PORT, Data.VERDICT, counter=True),
        SetName.RECORD_PORTS: Layout(_VIP, Data.VERDICT),
        SetName.RECORD_NODE_PORTS: Layout(_NODE_PORT, Data.VERDICT),
        SetName.FORGET_PORTS: Layout(_VIP, Data.VERDICT),
        SetName.FORGET_NODE_PORTS: Layout(_NODE_PORT, Data.VERDICT),
        SetName.BOUND_ENDPOINTS: Layout((*_VIP, *_TARGET)),
        SetName.NODE_PORT_BOUND_ENDPOINTS: Layout((*_NODE_PORT, *_TARGET)),
        SetName.LOCAL_SOURCE_BOUND_ENDPOINTS: Layout((*_VIP, *_TARGET)),
        SetName.LOCAL_SOURCE_NODE_PORT_BOUND_ENDPOINTS: Layout((*_NODE_PORT, *_TARGET)),
        SetName.AFFINITIES: Layout((), Data.OBJECTS),
    },
)
KERNEL_SETS = tuple(name for name, layout in LAYOUTS.items() if layout.data is not Data.OBJECTS)

# Chains that choose an endpoint uniformly among N: the prefix of their names, and the map that each looks in.
PICKS: Mapping[str, SetName] = MappingProxyType(
    {
        "pick": SetName.ENDPOINTS,
        "node_port_pick": SetName.NODE_PORT_ENDPOINTS,
        "local_source_pick": SetName.LOCAL_SOURCE_ENDPOINTS,
        "local_source_node_port_pick": SetName.LOCAL_SOURCE_NODE_PORT_ENDPOINTS,
    },
)
_PICK_NAME = re.compile(r"((?:local_source_)?(?:node_port_)?pick)_([1-9][0-9]*)\Z")


class Pick(NamedTuple):
    """A chain that picks one of `size` endpoints in `endpoints`."""

    endpoints: SetName
    size: int


def parse_pick(chain: str) -> Pick | None:
    """The meaning of a chain's name; None if it is not a pick chain."""
    match = _PICK_NAME.match(chain)
    return Pick(PICKS[match[1]], int(match[2])) if match else None


def address_bytes(family: Family) -> int:
    """The size of an address field."""
    return 4 if family is Family.IPV4 else 16


def field_bytes(family: Family, field: Field) -> int:
    """The size of a field within a key."""
    if field is Field.INTERFACE:
        return INTERFACE_BYTES
    return address_bytes(family) if field is Field.ADDRESS else 4


def key_bytes(set_id: SetId) -> int:
    """The size of one key as the kernel holds it (one bound of an interval)."""
    return sum(field_bytes(set_id.family, field) for field in LAYOUTS[set_id.name].key)
