"""Which endpoints a node's traffic may use, and why."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from endpointslice.daemonsets import SameNode
from endpointslice.types import Endpoint, NodeName, Service, ServicePort, Zone


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


class Choice(msgspec.Struct, frozen=True):
    """Endpoints in the order they were given in, and why these."""

    endpoints: tuple[Endpoint, ...]
    tier: Tier
    why: Why


class Decision(msgspec.Struct, frozen=True):
    """What becomes of traffic to a kind of frontend; `choice.endpoints` is empty unless the verdict is DNAT."""

    verdict: Verdict
    choice: Choice


class PortChoice(msgspec.Struct, frozen=True):
    """The decisions for one Service port, family and node."""

    cluster_ip: Decision
    external: Decision  # NodePorts, external IPs and load-balancer IPs, from outside
    short_circuit: Decision  # the same frontends, from this node's own pods and host


def choose_port(
    endpoints: Sequence[Endpoint], service: Service, port: ServicePort, place: Place, same_node: SameNode
) -> PortChoice:
    raise NotImplementedError


def left_out(endpoints: Sequence[Endpoint], choice: Choice, place: Place) -> tuple[tuple[Endpoint, LeftOut], ...]:
    raise NotImplementedError
