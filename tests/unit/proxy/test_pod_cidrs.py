"""The guard over the Node's podCIDRs."""

import queue

import pytest

from endpointslice.snapshot import EMPTY, Changed, apply_events
from endpointslice.types import CIDR, Kind, Node, NodeName
from proxy.commits import Commit
from proxy.pod_cidrs import PodCIDRGuard

N1 = NodeName("n1")


def commit_of(*cidrs: str) -> Commit:
    node = Node(N1, pod_cidrs=tuple(map(CIDR, cidrs)))
    return Commit(apply_events(EMPTY, [Changed(Kind.NODE, "n1", node)])[0], None)


@pytest.mark.parametrize(
    ("commits", "said"),
    [
        pytest.param([["10.1.0.0/24"], ["10.1.0.0/24"]], [], id="the same"),
        pytest.param(
            [["10.1.0.0/24"], ["10.2.0.0/24"]],
            ["the Node n1 changed its podCIDRs from 10.1.0.0/24 to 10.2.0.0/24"],
            id="others",
        ),
        pytest.param([["10.1.0.0/24"], []], ["the Node n1 changed its podCIDRs from 10.1.0.0/24 to none"], id="none"),
    ],
)
def test_a_change_ends_the_process(commits: list[list[str]], said: list[str]) -> None:
    found: list[str] = []
    guard = PodCIDRGuard(N1, found.append)

    for cidrs in commits:
        guard.committed(commit_of(*cidrs))

    assert found == said


def test_without_the_node_nothing_is_said() -> None:
    found: list[str] = []
    guard = PodCIDRGuard(N1, found.append)

    guard.committed(commit_of("10.1.0.0/24"))
    guard.committed(Commit(EMPTY, None))

    assert found == []


def test_cidrs_that_do_not_come_end_it_too() -> None:
    said: queue.SimpleQueue[str] = queue.SimpleQueue()

    PodCIDRGuard(N1, said.put, wait_s=0.01).start()

    assert said.get(timeout=60) == "the Node n1 has no podCIDRs after 0 s, which detect mode NodeCIDR needs"
