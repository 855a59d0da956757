"""Addresses of a world."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.world.hosts import MOST_NODES, MOST_PODS, NodeSpec, PodSpec, plan_lan, plan_node, plan_outside, plan_pod
from e2e.world.probe import take_turns

NUMBERS = st.tuples(st.integers(1, MOST_NODES), st.integers(1, MOST_PODS))


@given(st.sets(NUMBERS, min_size=2, max_size=20))
def test_no_two_hosts_of_a_world_share_an_address(pods: set[tuple[int, int]]) -> None:
    nodes = {n: plan_node(NodeSpec(f"n{n}", "z"), f"n{n}", n) for n, _ in pods}
    hosts = [node.host for node in nodes.values()]
    hosts += [plan_pod(PodSpec("p", f"n{n}"), "p", nodes[n], number).host for n, number in pods]
    hosts += [plan_lan("lan"), plan_outside("outside")]
    taken = [ip for host in hosts for ip in (host.ipv4, host.ipv6)]
    taken += [ip for node in nodes.values() for ip in node.gateways]

    assert len(taken) == len(set(taken))


@pytest.mark.parametrize("number", [0, MOST_PODS + 1])
def test_a_number_without_an_address_is_refused(number: int) -> None:
    node = plan_node(NodeSpec("n1", "z"), "n1", 1)

    with pytest.raises(ValueError, match="room for 250 pods"):
        plan_pod(PodSpec("p", "n1"), "p", node, number)
    with pytest.raises(ValueError, match="1 to 99 nodes"):
        plan_node(NodeSpec("n", "z"), "n", 0)


@given(st.lists(st.integers(0, 5), max_size=6))
def test_targets_take_turns_and_each_gets_all_its_tries(tries: list[int]) -> None:
    turns = list(take_turns(tries))

    assert [turns.count(index) for index in range(len(tries))] == tries
    assert turns[: sum(n > 0 for n in tries)] == [index for index, n in enumerate(tries) if n > 0]
