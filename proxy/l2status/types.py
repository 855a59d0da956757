"""What is said of a Service on a node, and the objects that say it."""

from typing import NamedTuple

import msgspec

from endpointslice.types import IP, NodeName, ServiceName


class Address(NamedTuple):
    """One that the node answers for."""

    ip: IP
    interface: str


class Stranger(NamedTuple):
    """A host that is no node answers for one of the Service's addresses."""

    ip: IP
    interface: str
    mac: str


class Entry(msgspec.Struct, frozen=True):
    """A Service's addresses on one node."""

    service: ServiceName
    node: NodeName
    addresses: tuple[Address, ...] = ()
    conflicts: tuple[Stranger, ...] = ()


class Stored(msgspec.Struct, frozen=True):
    """An object of the API server."""

    entry: Entry
    version: str  # its resourceVersion


class Put(NamedTuple):
    """Make the object so; `version`: only while it has that one."""

    entry: Entry
    version: str = ""


class Delete(NamedTuple):
    """Take the object away, while it has that version."""

    stored: Stored


Write = Put | Delete
