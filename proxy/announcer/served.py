"""What a proxy serves at load-balancer addresses, and what an announcer makes of it: a table of keys and candidates.

Only what the kernel has agreed to is served: the caller gives the Snapshot of the last commit. No I/O.
"""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from endpointslice.addresses import family_of
from endpointslice.snapshot import Snapshot
from endpointslice.types import (
    IP,
    NodeName,
    Service,
    ServiceName,
    Slice,
    SliceName,
    TrafficDistribution,
    TrafficPolicy,
)
from proxy.announcer.wires import wire_of
from proxy.l2.candidates import Demand, NodeFacts, Options, Table, Vip, judge
from proxy.l2.types import Channel, Key

_CLOSE = frozenset({TrafficDistribution.PREFER_CLOSE, TrafficDistribution.PREFER_SAME_NODE})
_NO_SLICES: Mapping[SliceName, Slice] = {}


class Served(msgspec.Struct, frozen=True):
    """One address that this node's kernel serves."""

    vip: IP
    demand: Demand
    facts: NodeFacts  # of this node


def list_served(snapshot: Snapshot, node: NodeName) -> dict[IP, Served]:
    """Every load-balancer address of the Snapshot; Services that share one are merged."""
    known = snapshot.nodes.get(node)
    facts = NodeFacts(node, ready=known is None or known.ready)
    demands: dict[IP, Demand] = {}
    for name, service in snapshot.services.items():
        for vip in service.load_balancer_ips:
            demand = _demand(service, snapshot.slices.get(name, _NO_SLICES), vip)
            demands[vip] = merge_demands(demands[vip], demand) if vip in demands else demand
    return {vip: Served(vip, demand, facts) for vip, demand in demands.items()}


def _demand(service: Service, slices: Mapping[SliceName, Slice], vip: IP) -> Demand:
    ready: dict[NodeName, set[IP]] = {}
    draining: set[NodeName] = set()
    elsewhere = False
    for piece in slices.values():
        if piece.family is not family_of(vip):
            continue
        for endpoint in piece.endpoints:
            serves = endpoint.ready or (endpoint.serving and endpoint.terminating)
            if endpoint.node is None:
                elsewhere |= serves
            elif endpoint.ready:
                ready.setdefault(endpoint.node, set()).add(endpoint.ip)
            elif serves:
                draining.add(endpoint.node)
    return Demand(
        local=service.external_traffic_policy is TrafficPolicy.LOCAL,
        prefer_close=service.traffic_distribution in _CLOSE,
        pinned=service.announce_on,
        preferred=dict(service.prefer_nodes),
        ready={node: len(ips) for node, ips in ready.items()},
        draining=frozenset(draining),
        elsewhere=elsewhere,
    )


def merge_demands(one: Demand, other: Demand) -> Demand:
    """Of two Services at one address. Under policy Local a node must serve both; else either is enough."""
    if one.local != other.local:
        return msgspec.structs.replace(one if one.local else other, prefer_close=one.prefer_close or other.prefer_close)
    both = one.ready.keys() & other.ready.keys() if one.local else one.ready.keys() | other.ready.keys()
    ready = {node: one.ready.get(node, 0) + other.ready.get(node, 0) for node in sorted(both)}
    serves = (one.ready.keys() | one.draining) & (other.ready.keys() | other.draining)
    draining = serves - ready.keys() if one.local else (one.draining | other.draining) - ready.keys()
    pinned = one.pinned & other.pinned if one.pinned and other.pinned else one.pinned | other.pinned
    weights = {**one.preferred}
    for node, weight in other.preferred.items():
        weights[node] = weights.get(node, 0) + weight
    return Demand(
        local=one.local,
        prefer_close=one.prefer_close or other.prefer_close,
        pinned=pinned,
        preferred=weights,
        ready=ready,
        draining=frozenset(draining),
        elsewhere=one.elsewhere or other.elsewhere,
    )


def make_table(
    served: Iterable[Served], wires: Collection[Channel], members: Collection[NodeName], options: Options
) -> Table:
    """The table of this node: each address on the wire that it is in; others are judged by what we know of them."""
    vips: dict[Key, Vip] = {}
    for one in served:
        wire = wire_of(one.vip, wires)
        if wire is None:
            continue
        key = Key(one.vip, wire)
        others = sorted(({*members} | one.demand.ready.keys() | one.demand.draining) - {one.facts.node})
        vips[key] = Vip(
            key,
            mine=judge(one.facts, one.demand, options),
            others=tuple(judge(NodeFacts(node), one.demand, options) for node in others),
            local=one.demand.local,
            prefer_close=one.demand.prefer_close,
        )
    return Table(vips)


def used_wires(served: Iterable[Served], wires: Collection[Channel]) -> frozenset[Channel]:
    """The wires that have an address on them: on the others nobody needs to be heard."""
    found = (wire_of(one.vip, wires) for one in served)
    return frozenset(wire for wire in found if wire is not None)


def services_at(snapshot: Snapshot, vip: IP) -> tuple[ServiceName, ...]:
    """Whose the address is, for people."""
    return tuple(sorted(name for name, service in snapshot.services.items() if vip in service.load_balancer_ips))
