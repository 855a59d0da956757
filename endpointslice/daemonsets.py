"""The same-node rule for DaemonSets: whether a Service has "one pod on every node".

The API has no word for it, so it is judged (the idea: the discussion of KEP-4444 in kubernetes/enhancements): the
Service asks for closeness, exactly one DaemonSet is behind it, and that covers the nodes it is meant for. Then traffic
stays on its node. Coverage counts against the DaemonSet's own status, because the DaemonSet controller knows taints,
selectors and affinity (of 6 Ready nodes with 3 tainted, 3 are desired; tried with Kubernetes 1.36).
Who owns a pod is known of this node's own pods only, from their ownerReferences; of all others the name is a hint.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec

from endpointslice.types import (
    DaemonSet,
    DaemonSetName,
    NodeName,
    Pod,
    PodName,
    Service,
    Slice,
    SliceEndpoint,
    TrafficDistribution,
)

HOLD_S = 30.0  # how long too few covered nodes are put up with, once the rule is on


class Mode(StrEnum):
    """Config `sameNodeForDaemonSets`."""

    AUTO = "Auto"  # the DaemonSet must cover its nodes
    ALWAYS = "Always"  # no coverage test
    NEVER = "Never"


class NotOne(StrEnum):
    """Why a Service isn't backed by exactly one DaemonSet."""

    NO_SELECTOR = "no-selector"
    NO_DAEMON_SET = "no-daemon-set"
    SEVERAL = "several-daemon-sets"


class SameNodeWhy(StrEnum):
    """Why the same-node rule is on or off for a Service on a node."""

    COVERED = "covered"  # on
    HELD = "held"  # on: too few nodes, but for less than HOLD_S
    ALWAYS = "always"  # on: no coverage test
    NEVER = "never"  # off by config
    NO_PREFERENCE = "no-preference"  # trafficDistribution is neither PreferClose nor PreferSameZone
    NO_SELECTOR = "no-selector"
    NO_DAEMON_SET = "no-daemon-set"
    SEVERAL_DAEMON_SETS = "several-daemon-sets"
    OTHER_PODS = "other-pods"  # an endpoint isn't a pod, or its name isn't one that the DaemonSet gives
    TOO_FEW_NODES = "too-few-nodes"
    NO_LOCAL_ENDPOINT = "no-local-endpoint"  # none of this node is ready
    OWNER_UNKNOWN = "owner-unknown"  # see `SameNode.wanted_pod`
    OTHER_OWNER = "other-owner"  # this node's own pod belongs to something else


class Hold(NamedTuple):
    """The memory of the 30 s rule; one per Service."""

    on: bool = False
    until_s: float | None = None  # goes off then, unless covered again; None: no clock is running


class SameNode(NamedTuple):
    """The same-node rule's answer for one Service on one node."""

    on: bool
    why: SameNodeWhy
    daemon_set: DaemonSetName | None = None  # the one that matched
    wanted_pod: PodName | None = None  # whose owner the answer needs and doesn't know
    hold: Hold = Hold()  # to be given to the next call; judge again at `hold.until_s`


SAME_NODE_OFF = SameNode(on=False, why=SameNodeWhy.NO_PREFERENCE)


class Evidence(msgspec.Struct, frozen=True):
    """What the rule may look at besides the Service and its slices; the same for every Service."""

    mode: Mode
    node: NodeName  # this node; "": nothing is local
    daemon_sets: Mapping[DaemonSetName, DaemonSet]
    pods: Mapping[PodName, Pod]  # those whose owner is known
    ready_nodes: int | None = None  # of the folder; None or 0: it holds none (or the source is an API server)


_PREFERENCES = frozenset({TrafficDistribution.PREFER_CLOSE, TrafficDistribution.PREFER_SAME_ZONE})
_NOT_ONE = {
    NotOne.NO_SELECTOR: SameNodeWhy.NO_SELECTOR,
    NotOne.NO_DAEMON_SET: SameNodeWhy.NO_DAEMON_SET,
    NotOne.SEVERAL: SameNodeWhy.SEVERAL_DAEMON_SETS,
}
_POD_SUFFIX = re.compile(r"-[a-z0-9]{5}")
_PERCENT = re.compile(r"(\d+)%", re.ASCII)


def match_daemon_set(service: Service, daemon_sets: Iterable[DaemonSet]) -> DaemonSetName | NotOne:
    """The one DaemonSet of the Service's namespace whose pods its selector selects, or why there isn't one."""
    if not service.selector:
        return NotOne.NO_SELECTOR
    prefix = service.name.partition("/")[0] + "/"
    selected = [
        daemon_set.name
        for daemon_set in daemon_sets
        if service.selector <= daemon_set.template_labels and daemon_set.name.startswith(prefix)
    ]
    if not selected:
        return NotOne.NO_DAEMON_SET
    return selected[0] if len(selected) == 1 else NotOne.SEVERAL


def hold(previous: Hold, *, covered_now: bool, now_s: float) -> Hold:
    """Coverage with the memory of the last HOLD_S: a roll-out may miss a few nodes without moving all traffic twice.

    `now_s` is of a clock that only goes forward. Asking again at the same time gives the same answer.
    """
    if covered_now:
        return Hold(on=True)
    if not previous.on:
        return Hold()
    until_s = now_s + HOLD_S if previous.until_s is None else previous.until_s
    return Hold(on=True, until_s=until_s) if now_s < until_s else Hold()


def judge_same_node(
    service: Service, slices: Iterable[Slice], evidence: Evidence, *, held: Hold, now_s: float
) -> SameNode:
    """Whether traffic of this node to the Service stays on it while it has a ready endpoint, and why (not).

    `held` is the last answer's `hold`, at first `Hold()`. Only missing coverage is put up with for a while; whatever
    else is missing turns the rule off at once.
    """
    if evidence.mode is Mode.NEVER:
        return SameNode(on=False, why=SameNodeWhy.NEVER)
    if service.traffic_distribution not in _PREFERENCES:
        return SAME_NODE_OFF
    name = match_daemon_set(service, evidence.daemon_sets.values())
    if isinstance(name, NotOne):
        return SameNode(on=False, why=_NOT_ONE[name])
    endpoints = [endpoint for piece in slices for endpoint in piece.endpoints]
    if not all(endpoint.pod is not None and may_own(name, endpoint.pod) for endpoint in endpoints):
        return SameNode(on=False, why=SameNodeWhy.OTHER_PODS, daemon_set=name)
    after, why = _judge_coverage(evidence.daemon_sets[name], endpoints, evidence, (held, now_s))
    if not after.on:
        return SameNode(on=False, why=why, daemon_set=name)
    return _judge_owner(SameNode(on=True, why=why, daemon_set=name, hold=after), endpoints, evidence)


def may_own(daemon_set: DaemonSetName, pod: PodName) -> bool:
    """Whether the pod's name is one that the DaemonSet's controller gives; no proof, since names can be chosen."""
    return pod.startswith(daemon_set) and _POD_SUFFIX.fullmatch(pod, len(daemon_set)) is not None


def wanted_nodes(daemon_set: DaemonSet, ready_nodes: int | None) -> int:
    """How many nodes must have a ready pod: all it is meant for, but for max(1, maxUnavailable).

    Without a status (a manifest) all Ready nodes count; 0 or less where neither is known.
    """
    desired = ready_nodes or 0 if daemon_set.desired is None else daemon_set.desired
    return desired - max(1, _resolve(daemon_set.max_unavailable, desired))


def _resolve(max_unavailable: str, desired: int) -> int:
    """A number, or a percentage of `desired` rounded up as the DaemonSet controller does; 0 for anything else."""
    percent = _PERCENT.fullmatch(max_unavailable)
    if percent is not None:
        return -(-int(percent[1]) * desired // 100)
    return int(max_unavailable) if max_unavailable.isascii() and max_unavailable.isdigit() else 0


def _judge_coverage(
    daemon_set: DaemonSet, endpoints: Iterable[SliceEndpoint], evidence: Evidence, memory: tuple[Hold, float]
) -> tuple[Hold, SameNodeWhy]:
    """Distinct nodes count, because maxSurge puts two pods on one."""
    held, now_s = memory
    if evidence.mode is Mode.ALWAYS:
        return Hold(on=True), SameNodeWhy.ALWAYS
    nodes = {endpoint.node for endpoint in endpoints if endpoint.ready and endpoint.node is not None}
    covered = len(nodes) >= wanted_nodes(daemon_set, evidence.ready_nodes)
    after = hold(held, covered_now=covered, now_s=now_s)
    if covered:
        return after, SameNodeWhy.COVERED
    return after, SameNodeWhy.HELD if after.on else SameNodeWhy.TOO_FEW_NODES


def _judge_owner(answer: SameNode, endpoints: Iterable[SliceEndpoint], evidence: Evidence) -> SameNode:
    """The answer, unless a ready pod of this node belongs to something else or isn't known.

    The owner of a pod that isn't ready yet is wanted as well, so that it is known in time.
    """
    local = [
        (endpoint, _owner(endpoint, evidence.pods))
        for endpoint in endpoints
        if evidence.node and endpoint.node == evidence.node
    ]
    unknown = sorted((not endpoint.ready, endpoint.pod) for endpoint, owner in local if endpoint.pod and owner is None)
    answer = answer._replace(wanted_pod=unknown[0][1] if unknown else None)
    owners = [owner for endpoint, owner in local if endpoint.ready]
    if not owners:
        return answer._replace(on=False, why=SameNodeWhy.NO_LOCAL_ENDPOINT)
    if any(owner is not None and owner.daemon_set != answer.daemon_set for owner in owners):
        return answer._replace(on=False, why=SameNodeWhy.OTHER_OWNER)
    if None in owners:
        return answer._replace(on=False, why=SameNodeWhy.OWNER_UNKNOWN)
    return answer


def _owner(endpoint: SliceEndpoint, pods: Mapping[PodName, Pod]) -> Pod | None:
    """The endpoint's pod, if it is the one that is known by that name and not its predecessor."""
    pod = pods.get(endpoint.pod) if endpoint.pod is not None else None
    if pod is None or (pod.uid and endpoint.pod_uid and pod.uid != endpoint.pod_uid):
        return None
    return pod
