"""Which nodes may own an address, and how much each is wanted: what the API says of them, each with a stable reason."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from endpointslice.types import NodeName
from proxy.l2.types import Key, Tier


class Why(StrEnum):
    """Why a node may not own an address, or ELIGIBLE; stable codes."""

    ELIGIBLE = "eligible"
    # what the API says of the node
    NO_ADVERTISEMENT = "no-matching-advertisement"
    PINNED_ELSEWHERE = "pinned-elsewhere"
    NETWORK_UNAVAILABLE = "node-network-unavailable"
    EXCLUDED = "node-excluded"  # node.kubernetes.io/exclude-from-external-load-balancers
    NO_NODE = "no-such-node"  # the API has Nodes, and none of this name
    LEAVING = "node-leaving"  # being deleted, or on the cluster autoscaler's way out
    OUT_OF_SERVICE = "node-out-of-service"
    NOT_READY = "node-not-ready"
    CORDONED = "node-cordoned"
    NO_ENDPOINTS = "no-endpoints"  # nobody anywhere serves
    NO_LOCAL_ENDPOINT = "no-local-endpoint"  # externalTrafficPolicy Local
    # what only the node itself knows
    NOT_IN_TABLE = "not-in-table"  # its proxy knows no such address
    NOT_PROGRAMMED = "not-programmed"  # its kernel can't serve it yet
    NO_INTERFACE = "no-interface"  # in the address's subnet
    UNKNOWN_INTERFACE = "unknown-interface"  # the advertisements name interfaces, of which it has none
    OTHER_INTERFACE = "interface-not-advertised"  # they name others than the one in the address's subnet
    NO_CARRIER = "no-carrier"
    DRAINING = "draining"
    LISTENING = "listening"  # woke up late or came back: it looks before it speaks
    SUSPENDED = "suspended"  # its wire has been silent
    ADDRESS_IN_USE = "address-in-use"  # a foreign host answers for it
    BARRED = "barred"  # let the address go on evidence that another has it
    # what the others see of it
    SILENT = "silent"
    LEFT = "left"


class Options(msgspec.Struct, frozen=True):
    """What of a node's state counts. The defaults lose no service: a cordon stops new pods, not traffic."""

    leaves_cordoned: bool = False
    leaves_not_ready: bool = True
    ignores_exclude_label: bool = False
    shares: bool = False  # addresses may be shared by several nodes (experimental)


class NodeFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the API says of a node."""

    node: NodeName
    exists: bool = True
    ready: bool = True  # False: it hasn't been for long, while most others are
    ready_now: bool = True  # as the API has it at this moment
    network_available: bool = True
    excluded: bool = False
    out_of_service: bool = False
    cordoned: bool = False
    leaving: bool = False
    drained: bool = False  # by its annotation
    shutting_down: bool = False


class Reach(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the advertisements that match an address say together."""

    nodes: frozenset[NodeName] | None = None  # None: all
    weights: Mapping[NodeName, int] = msgspec.field(default_factory=dict)  # sums of preferredNodeSelectors
    interfaces: Mapping[NodeName, frozenset[str]] = msgspec.field(default_factory=dict)  # absent: any
    spread: bool = False  # clients should be spread over several nodes
    disagrees: bool = False  # one advertisement says so, and another doesn't


EVERYWHERE = Reach()


class Demand(msgspec.Struct, frozen=True):
    """What the Services behind an address ask for."""

    local: bool = False  # externalTrafficPolicy Local
    prefer_close: bool = False
    pinned: frozenset[NodeName] = frozenset()  # only these, where any is named
    preferred: Mapping[NodeName, int] = msgspec.field(default_factory=dict)  # weights, added to the advertisements'
    ready: Mapping[NodeName, int] = msgspec.field(default_factory=dict)  # ready endpoints of each node
    draining: frozenset[NodeName] = frozenset()  # nodes with serving endpoints that terminate
    elsewhere: bool = False  # endpoints without a node serve: they make nobody local, but somebody serves
    sticky: bool = False  # sessionAffinity ClientIP


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """A node and an address: whether it may own it, and how much it is wanted."""

    node: NodeName
    why: Why = Why.ELIGIBLE
    tier: Tier = Tier.READY
    preference: int = 0  # higher is better
    ready: int = 0  # ready endpoints there, where being close counts


class Vip(msgspec.Struct, frozen=True):
    """One address of a proxy's table. `mine` is judged by this node's own proxy, `others` only rank."""

    key: Key
    mine: Candidate
    others: tuple[Candidate, ...] = ()
    local: bool = False
    prefer_close: bool = False
    programmed: bool = True
    shared: bool = False  # by several members, each of which answers some clients
    not_shared: str = ""  # why it isn't, though that is asked for; a code of shares.NoShare


class Table(msgspec.Struct, frozen=True):
    """What a proxy has told its announcer."""

    vips: Mapping[Key, Vip] = msgspec.field(default_factory=dict)
    peers_ready: bool = False  # the API says, freshly, that the other nodes are Ready


def judge(facts: NodeFacts, demand: Demand, options: Options, reach: Reach = EVERYWHERE) -> Candidate:
    """The node as a candidate. What an administrator said comes first, then the node's state, then the endpoints.

    An endpoint without a node is nobody's: it makes no node local, and keeps an address under policy Cluster served.
    """
    node = facts.node
    ready = demand.ready.get(node, 0)
    draining = node in demand.draining
    tier = Tier.READY if ready else Tier.DRAINING if draining else Tier.NONE
    return Candidate(
        node=node,
        why=_why(facts, demand, options, reach) or _why_not_served(demand, tier),
        tier=tier,
        preference=reach.weights.get(node, 0) + demand.preferred.get(node, 0),
        ready=ready if demand.local or demand.prefer_close else 0,
    )


def _why(facts: NodeFacts, demand: Demand, options: Options, reach: Reach) -> Why | None:
    """What an administrator said, and the node's state; None: nothing stands in the way."""
    if reach.nodes is not None and facts.node not in reach.nodes:
        return Why.NO_ADVERTISEMENT
    if demand.pinned and facts.node not in demand.pinned:
        return Why.PINNED_ELSEWHERE
    if facts.excluded and not options.ignores_exclude_label:
        return Why.EXCLUDED
    if facts.drained or facts.shutting_down:
        return Why.DRAINING
    return _why_of_state(facts, options)


def _why_of_state(facts: NodeFacts, options: Options) -> Why | None:
    if not facts.exists:
        return Why.NO_NODE
    if facts.leaving:
        return Why.LEAVING
    if facts.out_of_service:
        return Why.OUT_OF_SERVICE
    if not facts.network_available:
        return Why.NETWORK_UNAVAILABLE
    if not facts.ready and options.leaves_not_ready:
        return Why.NOT_READY
    if facts.cordoned and options.leaves_cordoned:
        return Why.CORDONED
    return None


def _why_not_served(demand: Demand, tier: Tier) -> Why:
    if not (any(demand.ready.values()) or demand.draining or demand.elsewhere):
        return Why.NO_ENDPOINTS
    if demand.local and tier is Tier.NONE:
        return Why.NO_LOCAL_ENDPOINT
    return Why.ELIGIBLE
