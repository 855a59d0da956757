"""What a table does with a frontend, in the same words whoever wrote it. Values only."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from endpointslice.topology import Verdict
from endpointslice.types import IP, Family, Protocol
from proxy.planner.plan import Source

Sources = tuple[tuple[int, int], ...]  # first and last address of each range, sorted; neighbours are merged


class Key(NamedTuple):
    """What a client connects to. Sorts the NodePorts of a family first."""

    family: Family
    ip: IP  # "": a NodePort
    protocol: Protocol
    port: int


class Fate(msgspec.Struct, frozen=True):
    """What becomes of a new connection."""

    verdict: Verdict | None  # None: nothing translates or refuses it
    endpoints: tuple[str, ...] = ()  # "ip:port", sorted


class Treatment(msgspec.Struct, frozen=True):
    """All that a table says about one frontend."""

    outside: Fate
    here: Fate  # of this node's own pods and host; the same as `outside` but for externalTrafficPolicy Local
    affinity_s: int | None = None  # None: off
    sources: Sources = ()  # the only ones that may reach it; (): all
    source: Source | None = None  # what endpoints see of a client outside; None: this can't be seen
    problem: str = ""  # what of it could not be understood


class Table(msgspec.Struct, frozen=True):
    """What was found in one table, of all families together."""

    name: str
    treatments: Mapping[Key, Treatment]
    cluster_ips: frozenset[IP]
    node_addresses: Mapping[Family, frozenset[IP] | None]  # where NodePorts answer; None: at every local address
    problems: tuple[str, ...] = ()  # of the table as a whole
    unseen: tuple[str, ...] = ()  # what this table doesn't show, for people
