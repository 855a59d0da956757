"""Differences from kube-proxy that are meant to be. Everything else that differs is a fault.

Not seen here at all: a TCP reset and an ICMP error are both "refused" to a client; no world has a DaemonSet, so
the same-node rule (D8) never applies; and no two Services of a world claim one address and port (D9).
"""

from collections.abc import Callable
from typing import NamedTuple

from e2e.differential.judge import Disagreement
from e2e.differential.model import EndpointSpec, ServiceSpec, State
from e2e.differential.places import LOCAL_PODS, POD_IPS
from e2e.differential.targets import Target


class Wanted(NamedTuple):
    """A kind of difference."""

    name: str
    reason: str
    explains: Callable[[ServiceSpec, Disagreement], bool]


def find_wanted(state: State, found: Disagreement) -> Wanted | None:
    """What explains the difference; None: nothing does."""
    for service in state.services:
        if service.name == found.probe.target.service:
            return next((one for one in WANTED if one.explains(service, found)), None)
    return None


def _prefers_without_hints(service: ServiceSpec, found: Disagreement) -> bool:
    """No endpoint of the port has a hint, and closeby chose among kube-proxy's endpoints."""
    endpoints = _endpoints(service, found.probe.target)
    hinted = any(one.for_zones or one.for_nodes for one in endpoints)
    return service.distribution is not None and not hinted and found.closeby <= found.peer


def _reaches_itself_without_node(service: ServiceSpec, found: Disagreement) -> bool:
    """A pod that is an endpoint without a nodeName meets itself with closeby only; the rest is equal."""
    if found.probe.client not in LOCAL_PODS:
        return False
    own = POD_IPS[LOCAL_PODS.index(found.probe.client)]
    here = [one for one in _endpoints(service, found.probe.target) if one.ip in own]
    if not any(one.node is None for one in here):
        return False
    if service.sticky:  # each side's chance may have bound the pod to itself or to another
        return found.peer == {"timed-out"} and len(found.closeby) == 1
    itself = {fate for fate in found.closeby if fate.split(" ")[0] in own}
    return bool(itself) and found.peer - {"timed-out"} <= found.closeby - itself


def _forgets_a_binding(service: ServiceSpec, found: Disagreement) -> bool:
    answers = found.closeby - {"timed-out"}
    return service.sticky and bool(answers) and answers != found.closeby and "timed-out" not in found.peer


def _loses_refusals(_service: ServiceSpec, found: Disagreement) -> bool:
    return found.closeby == {"refused"} and found.peer == {"refused", "timed-out"}


def _endpoints(service: ServiceSpec, target: Target) -> list[EndpointSpec]:
    """Those behind the target; of two with one address the one that doesn't terminate."""
    names = {p.name for p in service.ports if p.protocol == target.protocol and target.port in {p.port, p.node_port}}
    found: dict[str, EndpointSpec] = {}
    for piece in service.slices:
        if piece.is_ipv6 is not (":" in target.ip):
            continue
        if not any(p.name in names and p.protocol == target.protocol and p.port is not None for p in piece.ports):
            continue
        for one in piece.endpoints:
            if one.ip not in found or not one.terminating:
                found[one.ip] = one
    return list(found.values())


WANTED = (
    Wanted(
        "preference without hints",
        "slices written by hand have no hints; closeby takes the endpoints' own zones and nodes (rule 4 of the choice)",
        _prefers_without_hints,
    ),
    Wanted(
        "hairpin without nodeName",
        "closeby masquerades for every endpoint that a pod could be; kube-proxy only for those that name its node, so "
        "that a pod can't reach itself through a hand-written slice",
        _reaches_itself_without_node,
    ),
    Wanted(
        "a binding that went stale",
        "where affinity names an endpoint that isn't in the list any more, closeby drops that one packet and forgets: "
        "the next try, or the second SYN, is served",
        _forgets_a_binding,
    ),
    Wanted(
        "refusals that arrive",
        "kube-proxy refuses TCP by ICMP errors, some of which are lost; closeby by resets (D12)",
        _loses_refusals,
    ),
)
