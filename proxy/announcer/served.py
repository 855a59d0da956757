"""What a proxy serves at load-balancer addresses, and what an announcer makes of it: a table of keys and candidates.

Only what the kernel has agreed to is served: the caller gives the Snapshot of the last commit. No I/O.
"""

from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter
from typing import NamedTuple

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
from proxy.announcer.around import NOTHING_KNOWN, Around
from proxy.announcer.reach import ANYWHERE, Advertising
from proxy.announcer.wires import WireLink, wire_of
from proxy.l2.candidates import EVERYWHERE, Candidate, Demand, NodeFacts, Options, Reach, Table, Vip, Why, judge
from proxy.l2.shares import why_not_shared
from proxy.l2.types import Channel, Key

_CLOSE = frozenset({TrafficDistribution.PREFER_CLOSE, TrafficDistribution.PREFER_SAME_NODE})
_NO_SLICES: Mapping[SliceName, Slice] = {}


class Served(msgspec.Struct, frozen=True):
    """One address that this node's kernel serves."""

    vip: IP
    demand: Demand
    reach: str = ANYWHERE  # the name of one of Around's


class Said(NamedTuple):
    """All that a proxy tells its announcer."""

    served: Mapping[IP, Served]
    around: Around = NOTHING_KNOWN


class Place(NamedTuple):
    """Where a table is made."""

    node: NodeName
    wires: Mapping[Channel, str]  # with the interface of each; "": it is gone
    interfaces: Collection[str] = ()  # all that could be used
    members: Collection[NodeName] = ()
    options: Options = Options()


def locate(node: NodeName, found: Mapping[Channel, WireLink], used: Iterable[Channel]) -> Place:
    """The place of a node with these wires, of which some are used."""
    names = {wire: link.interface for wire, link in found.items()}
    return Place(node, {wire: names.get(wire, "") for wire in used}, frozenset(names.values()))


def named_interfaces(around: Around, node: NodeName) -> frozenset[str]:
    """Of a node, those that advertisements name."""
    return frozenset[str]().union(*(reach.interfaces.get(node, ()) for reach in around.reaches.values()))


def list_served(snapshot: Snapshot, advertising: Advertising | None = None) -> dict[IP, Served]:
    """Every load-balancer address of the Snapshot; Services that share one are merged."""
    demands: dict[IP, Demand] = {}
    names: dict[IP, list[ServiceName]] = {}
    for name, service in snapshot.services.items():
        for vip in service.load_balancer_ips:
            demand = _demand(service, snapshot.slices.get(name, _NO_SLICES), vip)
            demands[vip] = merge_demands(demands[vip], demand) if vip in demands else demand
            names.setdefault(vip, []).append(name)
    if advertising is None:
        return {vip: Served(vip, demand) for vip, demand in demands.items()}
    return {vip: Served(vip, demand, advertising.name_reach(vip, names[vip])) for vip, demand in demands.items()}


def know_own_node(snapshot: Snapshot, node: NodeName) -> Around:
    """What a source without all Nodes, pools and advertisements tells: how the node itself is, where it says so."""
    known = snapshot.nodes.get(node)
    if known is None:
        return NOTHING_KNOWN
    return Around({node: NodeFacts(node, ready=known.ready, ready_now=known.ready, leaving=known.leaving)})


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
        sticky=service.affinity_timeout_s is not None,
    )


def merge_demands(one: Demand, other: Demand) -> Demand:
    """Of two Services at one address. Under policy Local a node must serve both; else either is enough."""
    alike = {
        "prefer_close": one.prefer_close or other.prefer_close,
        "sticky": one.sticky or other.sticky,
    }
    if one.local != other.local:
        return msgspec.structs.replace(one if one.local else other, **alike)
    both = one.ready.keys() & other.ready.keys() if one.local else one.ready.keys() | other.ready.keys()
    ready = {node: one.ready.get(node, 0) + other.ready.get(node, 0) for node in sorted(both)}
    serves = (one.ready.keys() | one.draining) & (other.ready.keys() | other.draining)
    draining = serves - ready.keys() if one.local else (one.draining | other.draining) - ready.keys()
    pinned = one.pinned & other.pinned if one.pinned and other.pinned else one.pinned | other.pinned
    weights = {**one.preferred}
    for node, weight in other.preferred.items():
        weights[node] = weights.get(node, 0) + weight
    return Demand(
        **alike,
        local=one.local,
        pinned=pinned,
        preferred=weights,
        ready=ready,
        draining=frozenset(draining),
        elsewhere=one.elsewhere or other.elsewhere,
    )


class TableMaker:
    """Makes one table after another. What hasn't changed is the same object as before, so little is looked at anew."""

    def __init__(self) -> None:
        self._here: tuple[Around, Place] | None = None  # None: nothing was made yet
        self._rows: dict[IP, tuple[Served, Vip | None]] = {}
        self._plain: dict[tuple[str, bool, bool, bool], tuple[Candidate, ...]] = {}

    def make(self, said: Said, place: Place) -> Table:
        """This node's table: each address on the wire that it is in; others are judged by what we know of them."""
        here = said.around, place
        stands = here == self._here
        moved = self._here is None or self._here[1].wires.keys() != place.wires.keys()
        if not stands:
            self._here, self._plain = here, {}
        before, self._rows = self._rows, {}
        for one in said.served.values():
            row = before.get(one.vip)
            if row is None or not stands or row[0] is not one:
                known = row[1] if row is not None else None
                wire = known.key.wire if known is not None and not moved else wire_of(one.vip, place.wires)
                vip = _make_vip(one, wire, here, self._others(one, here)) if wire is not None else None
                row = one, known if known == vip else vip
            self._rows[one.vip] = row
        vips = {vip.key: vip for _served, vip in self._rows.values() if vip is not None}
        return Table(vips, peers_ready=_are_ready(*here))

    def _others(self, one: Served, here: tuple[Around, Place]) -> tuple[Candidate, ...]:
        """By name. Nodes that the demand says nothing of are judged once for all addresses that ask alike."""
        (around, place), demand = here, one.demand
        reach = around.reaches.get(one.reach, EVERYWHERE)
        serves = any(demand.ready.values()) or bool(demand.draining) or demand.elsewhere
        likes = one.reach, demand.local, bool(demand.pinned), serves
        plain = self._plain.get(likes)
        if plain is None:
            alike = Demand(local=demand.local, pinned=_NOBODY if demand.pinned else frozenset(), elsewhere=serves)
            nodes = sorted({*place.members} - {place.node})
            plain = tuple(judge(facts_of(around, node), alike, place.options, reach) for node in nodes)
            self._plain[likes] = plain
        named = demand.ready.keys() | demand.draining
        named |= {node for node in (*demand.pinned, *demand.preferred) if node in place.members}
        named -= {place.node}
        if not named:
            return plain
        judged = {node: judge(facts_of(around, node), demand, place.options, reach) for node in named}
        rows = [judged.pop(row.node, row) for row in plain]
        return tuple(sorted((*rows, *judged.values()), key=_node_of) if judged else rows)


_NOBODY = frozenset({NodeName("")})
_node_of = attrgetter("node")


def _make_vip(one: Served, wire: Channel, here: tuple[Around, Place], others: tuple[Candidate, ...]) -> Vip:
    around, place = here
    reach = around.reaches.get(one.reach, EVERYWHERE)
    mine = judge(facts_of(around, place.node), one.demand, place.options, reach)
    refusal = why_not_shared(one.demand, reach, place.options) if reach.spread else None
    return Vip(
        Key(one.vip, wire),
        mine=msgspec.structs.replace(mine, why=_judge_interface(mine.why, reach, wire, place)),
        others=others,
        local=one.demand.local,
        prefer_close=one.demand.prefer_close,
        shared=reach.spread and refusal is None,
        not_shared=refusal.value if refusal is not None else "",
    )


def make_table(said: Said, place: Place) -> Table:
    """The same, once."""
    return TableMaker().make(said, place)


def facts_of(around: Around, node: NodeName) -> NodeFacts:
    """Of a node; where Nodes are known and it is none of them, that."""
    known = around.nodes.get(node)
    if known is not None:
        return known
    return NodeFacts(node, exists=not around.whole)


def _judge_interface(why: Why, reach: Reach, wire: Channel, place: Place) -> Why:
    """Only an interface that the advertisements name answers; each node knows its own alone."""
    allowed = reach.interfaces.get(place.node)
    if why is not Why.ELIGIBLE or not allowed or place.wires[wire] in {"", *allowed}:
        return why
    return Why.OTHER_INTERFACE if allowed & {*place.interfaces} else Why.UNKNOWN_INTERFACE


def _are_ready(around: Around, place: Place) -> bool:
    """Whether the API says of every other member that it is Ready."""
    others = [around.nodes.get(node) for node in place.members if node != place.node]
    return bool(others) and all(facts is not None and facts.ready_now for facts in others)


def used_wires(served: Iterable[IP], wires: Collection[Channel]) -> frozenset[Channel]:
    """The wires that have an address on them: on the others nobody needs to be heard."""
    names = tuple(wires)
    found = {wire_of(vip, names) for vip in served}
    return frozenset(wire for wire in found if wire is not None)


def services_at(snapshot: Snapshot, vip: IP) -> tuple[ServiceName, ...]:
    """Whose the address is, for people."""
    return tuple(sorted(name for name, service in snapshot.services.items() if vip in service.load_balancer_ips))
