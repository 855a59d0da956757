"""A Node of the API, as an announcer needs it."""

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from endpointslice.types import NodeName
from proxy.addresses.nodes import find_problems, is_excluded, read_node_state
from proxy.addresses.types import NodeState

PLAIN = NodeState(NodeName("n1"))


def read(spec: object = None, status: object = None, **metadata: object) -> NodeState:
    node = {"metadata": {"name": "n1", **metadata}, "spec": spec, "status": status}
    return read_node_state(json.dumps(node).encode(), "n1")


def conditions(**statuses: str) -> dict[str, Any]:
    return {"conditions": [{"type": type_, "status": status} for type_, status in statuses.items()]}


@pytest.mark.parametrize(
    ("node", "wanted"),
    [
        pytest.param(read(), {}, id="a manifest's bare Node is fine"),
        pytest.param(read(status=conditions(Ready="True")), {}, id="Ready"),
        pytest.param(read(status=conditions(Ready="Unknown")), {"ready": False}, id="a kubelet that is silent"),
        pytest.param(read(status=conditions(DiskPressure="False")), {"ready": False}, id="nobody says Ready"),
        pytest.param(
            read(status=conditions(Ready="True", NetworkUnavailable="True")),
            {"network_available": False},
            id="without a network",
        ),
        pytest.param(read({"unschedulable": True}), {"cordoned": True}, id="cordoned"),
        pytest.param(
            read({"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}),
            {"out_of_service": True},
            id="out of service",
        ),
        pytest.param(read(deletionTimestamp="2026-11-30T08:00:00Z"), {"leaving": True}, id="being deleted"),
        pytest.param(
            read({"taints": [{"key": "ToBeDeletedByClusterAutoscaler"}]}), {"leaving": True}, id="the autoscaler's"
        ),
        pytest.param(read(annotations={"closeby.dev/drain": "true"}), {"drained": True}, id="to be drained"),
        pytest.param(read(annotations={"closeby.dev/drain": "False"}), {}, id="not to be drained"),
        pytest.param(
            read(
                status={
                    "conditions": [
                        {"type": "Ready", "status": "False", "message": "[container runtime, node is shutting down]"}
                    ]
                }
            ),
            {"ready": False, "shutting_down": True},
            id="its kubelet says that it shuts down",
        ),
        pytest.param(
            read({"taints": [{"key": "node.cloudprovider.kubernetes.io/shutdown"}]}),
            {"shutting_down": True},
            id="its cloud says so",
        ),
        pytest.param(read(labels={"rack": "a"}), {"labels": frozenset({("rack", "a")})}, id="labels are kept"),
    ],
)
def test_a_node_is_read(node: NodeState, wanted: dict[str, Any]) -> None:
    assert node == replace(PLAIN, **wanted)


def test_an_annotation_that_is_neither_true_nor_false_drains_nothing_and_is_told() -> None:
    node = read(annotations={"closeby.dev/drain": "soon"})

    assert not node.drained
    assert find_problems([node, PLAIN]) == {
        "n1": 'metadata.annotations[closeby.dev/drain]: "soon" is neither true nor false'
    }


@pytest.mark.parametrize("value", ["", "true", "false"])
def test_the_label_excludes_by_its_presence(value: str) -> None:
    assert is_excluded(read(labels={"node.kubernetes.io/exclude-from-external-load-balancers": value}))
    assert not is_excluded(PLAIN)


def test_what_is_no_node_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        read_node_state(b'{"metadata": {"name": "n1"}, "spec": {"unschedulable": "yes"}}', "n1")
