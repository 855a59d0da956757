"""A client beside the nodes: which node's server answered it."""

from e2e.stories.beside import nodes_of
from e2e.world.clients import Outcome, Record


def test_a_server_names_its_node_and_no_answer_names_none() -> None:
    records = [
        Record(0, 1.0, 0.001, Outcome.ANSWERED, "hello-x@worker", "172.18.0.1"),
        Record(0, 1.1, 1.0, Outcome.TIMED_OUT, "", ""),
    ]

    assert nodes_of(records) == {"hello-x@worker": "worker"}
