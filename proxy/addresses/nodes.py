"""A Node (core/v1) as an announcer needs it: whether it may announce addresses, and its labels for selectors."""

from collections.abc import Iterable

import msgspec

from endpointslice.metadata import LEAVING_TAINT
from endpointslice.types import NodeName
from proxy.addresses import wire
from proxy.addresses.types import NodeState, Problem

EXCLUDE_LABEL = "node.kubernetes.io/exclude-from-external-load-balancers"  # present, whatever its value
OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service"  # a person says that the machine is down
SHUTDOWN_TAINT = "node.cloudprovider.kubernetes.io/shutdown"
DRAIN_ANNOTATION = "closeby.dev/drain"
# What a kubelet with shutdownGracePeriod writes into its Ready condition (1.36); there is no field for it.
SHUTDOWN_MESSAGE = "node is shutting down"
_TRUE, _FALSE = frozenset({"true", "1"}), frozenset({"false", "0", ""})

_NODES = msgspec.json.Decoder(wire.NodeState)


def read_node_state(body: bytes, name: str) -> NodeState:
    """The Node; msgspec.DecodeError if the bytes are none. An unreadable annotation drains nothing, and is told."""
    node = _NODES.decode(body)
    spec, metadata = node.spec or wire.NodeSpec(), node.metadata
    conditions = {one.type: one for one in (node.status.conditions if node.status else None) or ()}
    ready = conditions.get("Ready", wire.Condition(status="False" if conditions else "True"))
    taints = {taint.key for taint in spec.taints or ()}
    problems: list[Problem] = []
    return NodeState(
        name=NodeName(name),
        labels=frozenset((metadata.labels or {}).items()),
        ready=ready.status == "True",
        network_available=conditions.get("NetworkUnavailable", wire.Condition()).status != "True",
        out_of_service=OUT_OF_SERVICE_TAINT in taints,
        cordoned=spec.unschedulable is True,
        leaving=bool(metadata.deletion_timestamp) or LEAVING_TAINT in taints,
        drained=_is_drained(metadata, problems),
        shutting_down=SHUTDOWN_TAINT in taints or (ready.status != "True" and SHUTDOWN_MESSAGE in ready.message),
        problems=tuple(problems),
    )


def is_excluded(node: NodeState) -> bool:
    """Whether its label takes it out of load balancing."""
    return any(key == EXCLUDE_LABEL for key, _value in node.labels)


def _is_drained(metadata: wire.Metadata, problems: list[Problem]) -> bool:
    text = (metadata.annotations or {}).get(DRAIN_ANNOTATION, "")
    if text.lower() not in _TRUE | _FALSE:
        problems.append(Problem(f"metadata.annotations[{DRAIN_ANNOTATION}]", f'"{text}" is neither true nor false'))
    return text.lower() in _TRUE


def find_problems(nodes: Iterable[NodeState]) -> dict[str, str]:
    """What is wrong with Nodes, in one line each, by name."""
    return {node.name: "; ".join(map(str, node.problems)) for node in nodes if node.problems}
