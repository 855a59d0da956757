"""The same-node rule for DaemonSets: whether a Service counts as "one pod on every node"."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec

from endpointslice.types import DaemonSet, DaemonSetName, NodeName, Pod, PodName, Service, Slice

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


def match_daemon_set(service: Service, daemon_sets: Iterable[DaemonSet]) -> DaemonSetName | NotOne:
    raise NotImplementedError


def hold(previous: Hold, *, covered_now: bool, now_s: float) -> Hold:
    raise NotImplementedError


def judge_same_node(
    service: Service, slices: Iterable[Slice], evidence: Evidence, *, held: Hold, now_s: float
) -> SameNode:
    raise NotImplementedError
