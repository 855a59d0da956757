"""When a Node's change is a reason for a new start."""

import pytest

from endpointslice.snapshot import EMPTY, Changed, apply_events
from endpointslice.types import IP, Kind, Node, NodeName, Zone
from proxy.commits import Commit
from proxy.node_guard import NodeGuard, why_restart

NAME = NodeName("n1")
BARE = Node(NAME)
NODE = Node(NAME, addresses=(IP("192.0.2.1"), IP("fd00::1"), IP("203.0.113.9")))


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        pytest.param(None, None, "", id="no Node yet"),
        pytest.param(None, NODE, "", id="it appears"),
        pytest.param(BARE, NODE, "", id="it gets its first addresses"),
        pytest.param(NODE, Node(NAME, Zone("za"), NODE.addresses, leaving=True), "", id="other things change"),
        pytest.param(NODE, Node(NAME, addresses=NODE.addresses[:2]), "", id="a second address goes"),
        pytest.param(NODE, None, "the Node n1 was deleted", id="it is deleted"),
        pytest.param(
            NODE,
            Node(NAME, addresses=(IP("192.0.2.2"), IP("fd00::1"))),
            "the Node n1 changed its address from 192.0.2.1,fd00::1 to 192.0.2.2,fd00::1",
            id="another address",
        ),
        pytest.param(NODE, BARE, "the Node n1 changed its address from 192.0.2.1,fd00::1 to none", id="no address"),
    ],
)
def test_reasons(before: Node | None, after: Node | None, reason: str) -> None:
    assert why_restart(before, after) == reason


def test_the_guard_compares_each_commit_with_the_one_before() -> None:
    said: list[str] = []
    guard = NodeGuard(NAME, said.append)
    with_node, _touched = apply_events(EMPTY, [Changed(Kind.NODE, "n1", NODE)])

    for snapshot in (EMPTY, with_node, with_node):
        guard.committed(Commit(snapshot, None))
    assert said == []
    guard.committed(Commit(EMPTY, None))

    assert said == ["the Node n1 was deleted"]
