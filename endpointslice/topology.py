"""Which endpoints a node's traffic may use, and why."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from endpointslice.daemonsets import SameNode
from endpointslice.types import (
    Endpoint,
    NodeName,
    Service,
    ServicePort,
    TrafficDistribution,
    TrafficPolicy,
    Zone,
)


class Place(NamedTuple):
    """Where traffic is decided."""

    node: NodeName  # "": unknown, so nothing is local
    zone: Zone | None  # None: the Node has no zone label, so no zone matches


class Tier(StrEnum):
    """How close the chosen endpoints are."""

    SAME_NODE = "same-node"
    SAME_ZONE = "same-zone"
    CLUSTER = "cluster"
    LOCAL_POLICY = "local-policy"  # ready ones of this node, because a policy is Local
    DRAINING = "draining"  # serving ones that terminate, under either policy
    NONE = "none"


class Verdict(StrEnum):
    """What happens to a new connection."""

    DNAT = "dnat"
    REJECT = "reject"
    DROP = "drop"


class Why(StrEnum):
    """The rule that made a choice; stable codes."""

    NODE_HINTS = "node-hints"
    DAEMON_SET_ON_NODE = "daemon-set-on-node"
    ZONE_HINTS = "zone-hints"
    ENDPOINT_NODES = "endpoint-nodes"  # PreferSameNode without any hint: the endpoints' own nodes
    ENDPOINT_ZONES = "endpoint-zones"  # a preference without any hint: the endpoints' own zones
    ALL_READY = "all-ready"
    DRAINING = "draining"
    LOCAL_READY = "local-ready"
    LOCAL_DRAINING = "local-draining"
    NO_LOCAL_ENDPOINTS = "no-local-endpoints"  # usable ones are elsewhere: drop
    NO_ENDPOINTS = "no-endpoints"  # usable ones are nowhere: reject
    NO_FRONTEND = "no-frontend"  # the port isn't reachable this way


class LeftOut(StrEnum):
    """Why an endpoint isn't among the chosen; stable codes."""

    NOT_READY = "not-ready"
    TERMINATING = "terminating"  # and doesn't serve any more
    DRAINING = "draining"  # serves, but ready ones come first
    OTHER_NODE = "other-node"
    OTHER_ZONE = "other-zone"
    HINTED_ELSEWHERE = "hinted-elsewhere"
    NO_FRONTEND = "no-frontend"


class Choice(msgspec.Struct, frozen=True, gc=False):
    """Endpoints in the order they were given in, and why these."""

    endpoints: tuple[Endpoint, ...]
    tier: Tier
    why: Why


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What becomes of traffic to a kind of frontend; `choice.endpoints` is empty unless the verdict is DNAT."""

    verdict: Verdict
    choice: Choice


class PortChoice(msgspec.Struct, frozen=True, gc=False):
    """The decisions for one Service port, family and node."""

    cluster_ip: Decision
    external: Decision  # NodePorts, external IPs and load-balancer IPs, from outside
    short_circuit: Decision  # the same frontends, from this node's own pods and host


_NO_FRONTEND = Decision(Verdict.REJECT, Choice((), Tier.NONE, Why.NO_FRONTEND))
_REJECT = Decision(Verdict.REJECT, Choice((), Tier.NONE, Why.NO_ENDPOINTS))
_DROP = Decision(Verdict.DROP, Choice((), Tier.NONE, Why.NO_LOCAL_ENDPOINTS))
_LOCAL_WHYS = frozenset({Why.LOCAL_READY, Why.LOCAL_DRAINING, Why.NO_LOCAL_ENDPOINTS})
_READY_LEFT_OUT = {
    Why.NODE_HINTS: LeftOut.HINTED_ELSEWHERE,
    Why.ZONE_HINTS: LeftOut.HINTED_ELSEWHERE,
    Why.DAEMON_SET_ON_NODE: LeftOut.OTHER_NODE,
    Why.ENDPOINT_NODES: LeftOut.OTHER_NODE,
    Why.ENDPOINT_ZONES: LeftOut.OTHER_ZONE,
}


def choose_port(
    endpoints: Sequence[Endpoint], service: Service, port: ServicePort, place: Place, same_node: SameNode
) -> PortChoice:
    """The decisions for one Service port and family at `place`; `endpoints` are of that port and family, merged.

    Policy Local uses this node's endpoints alone, whatever hints say (KEP-2086); where only other nodes have usable
    ones, traffic is dropped, so that a load balancer tries the next node. With none anywhere it is refused.
    externalTrafficPolicy counts only for a Service that has an outside, and never for this node's own traffic.
    """
    has_outside = _has_outside(service, port)
    if not _has_usable(endpoints):
        external = _REJECT if has_outside else _NO_FRONTEND
        return PortChoice(_REJECT, external, external)
    internal_local = service.internal_traffic_policy is TrafficPolicy.LOCAL
    external_local = has_outside and keeps_local(service)
    cluster = local = _NO_FRONTEND
    if has_outside or not internal_local:
        choice = choose_cluster_endpoints(endpoints, service.traffic_distribution, place, same_node)
        cluster = Decision(Verdict.DNAT, choice)
    if internal_local or external_local:
        local = _decide_local(endpoints, place)
    return PortChoice(
        cluster_ip=local if internal_local else cluster,
        external=(local if external_local else cluster) if has_outside else _NO_FRONTEND,
        short_circuit=cluster if has_outside else _NO_FRONTEND,
    )


def choose_cluster_endpoints(
    endpoints: Sequence[Endpoint], distribution: TrafficDistribution | None, place: Place, same_node: SameNode
) -> Choice:
    """The endpoints for traffic that may go to any node; empty only if none is usable.

    The first rule that finds a ready endpoint decides: node hints (KEP-3015), the DaemonSet rule, zone hints (KEP-2433,
    KEP-4444), and, where no endpoint has any hint, what the preference would have hinted; else all ready ones. With no
    ready one, those that serve while they terminate (KEP-1669). A kind of hint, or of origin, counts only if every
    ready endpoint has one.
    """
    ready = tuple([endpoint for endpoint in endpoints if endpoint.ready])
    if not ready:
        draining = tuple(endpoint for endpoint in endpoints if is_usable(endpoint))
        return Choice(draining, Tier.DRAINING, Why.DRAINING) if draining else _REJECT.choice
    # The first one is looked at alone, as most have no hints: four generators less a Service.
    if (
        ready[0].for_nodes
        and all(endpoint.for_nodes for endpoint in ready)
        and (near := tuple(endpoint for endpoint in ready if place.node in endpoint.for_nodes))
    ):
        return Choice(near, Tier.SAME_NODE, Why.NODE_HINTS)
    if same_node.on and (near := tuple(endpoint for endpoint in ready if is_local(endpoint, place))):
        return Choice(near, Tier.SAME_NODE, Why.DAEMON_SET_ON_NODE)
    if (
        ready[0].for_zones
        and all(endpoint.for_zones for endpoint in ready)
        and (near := tuple(endpoint for endpoint in ready if place.zone in endpoint.for_zones))
    ):
        return Choice(near, Tier.SAME_ZONE, Why.ZONE_HINTS)
    if distribution is not None and not any(endpoint.for_nodes or endpoint.for_zones for endpoint in endpoints):
        return _choose_by_origin(ready, distribution, place)
    return Choice(ready, Tier.CLUSTER, Why.ALL_READY)


def left_out(endpoints: Sequence[Endpoint], choice: Choice, place: Place) -> tuple[tuple[Endpoint, LeftOut], ...]:
    """Every endpoint that the choice passed over, in the given order, each with its reason."""
    chosen = set(choice.endpoints)
    return tuple(
        (endpoint, _why_left_out(endpoint, choice.why, place)) for endpoint in endpoints if endpoint not in chosen
    )


def is_local(endpoint: Endpoint, place: Place) -> bool:
    """Whether the endpoint is on this node (m12): an endpoint without a node isn't, nor is any if ours is unknown."""
    return endpoint.node == place.node and bool(place.node)


def is_usable(endpoint: Endpoint) -> bool:
    """Whether traffic may go there at all: ready, or still serving while it terminates (KEP-1669)."""
    return endpoint.ready or (endpoint.serving and endpoint.terminating)


def _has_usable(endpoints: Iterable[Endpoint]) -> bool:
    """A loop, which ends at the first and costs a third of any() with a generator."""
    for endpoint in endpoints:  # noqa: SIM110  # see above
        if is_usable(endpoint):
            return True
    return False


def _has_outside(service: Service, port: ServicePort) -> bool:
    """Whether the port has any frontend but its ClusterIP."""
    return bool(port.node_port or service.external_ips or service.load_balancer_ips)


def keeps_local(service: Service) -> bool:
    """Whether externalTrafficPolicy is Local, on a Service that is meant to be reached from outside."""
    reachable = service.type in {"NodePort", "LoadBalancer"} or bool(service.external_ips)
    return reachable and service.external_traffic_policy is TrafficPolicy.LOCAL


def _decide_local(endpoints: Sequence[Endpoint], place: Place) -> Decision:
    """Ready endpoints of this node, else its draining ones; usable ones exist somewhere."""
    local = [endpoint for endpoint in endpoints if is_local(endpoint, place)]
    if ready := tuple(endpoint for endpoint in local if endpoint.ready):
        return Decision(Verdict.DNAT, Choice(ready, Tier.LOCAL_POLICY, Why.LOCAL_READY))
    if draining := tuple(endpoint for endpoint in local if is_usable(endpoint)):
        return Decision(Verdict.DNAT, Choice(draining, Tier.DRAINING, Why.LOCAL_DRAINING))
    return _DROP


def _choose_by_origin(ready: tuple[Endpoint, ...], distribution: TrafficDistribution, place: Place) -> Choice:
    """What the EndpointSlice controller's hints would have led to, had it written these slices."""
    prefers_node = distribution is TrafficDistribution.PREFER_SAME_NODE and all(endpoint.node for endpoint in ready)
    if prefers_node and (near := tuple(endpoint for endpoint in ready if is_local(endpoint, place))):
        return Choice(near, Tier.SAME_NODE, Why.ENDPOINT_NODES)
    if all(endpoint.zone for endpoint in ready) and (
        near := tuple(endpoint for endpoint in ready if endpoint.zone == place.zone)
    ):
        return Choice(near, Tier.SAME_ZONE, Why.ENDPOINT_ZONES)
    return Choice(ready, Tier.CLUSTER, Why.ALL_READY)


def _why_left_out(endpoint: Endpoint, why: Why, place: Place) -> LeftOut:
    if not is_usable(endpoint):
        return LeftOut.TERMINATING if endpoint.terminating else LeftOut.NOT_READY
    if why in _LOCAL_WHYS:
        return LeftOut.DRAINING if is_local(endpoint, place) else LeftOut.OTHER_NODE
    if not endpoint.ready and why is not Why.NO_FRONTEND:
        return LeftOut.DRAINING
    return _READY_LEFT_OUT.get(why, LeftOut.NO_FRONTEND)
