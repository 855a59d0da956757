"""What a proxy knows beyond what it serves."""

import json
from collections.abc import Mapping

from endpointslice.types import NodeName
from proxy.addresses.decode import READERS, Change, decode_object
from proxy.addresses.nodes import read_node_state
from proxy.addresses.state import State, apply_changes
from proxy.addresses.types import Kind
from proxy.announcer.around import Surveyed, describe_around, make_advertising, show_problems, survey
from proxy.announcer.readiness import Readiness
from proxy.l2.candidates import NodeFacts, Reach

N_1, N_2 = NodeName("n1"), NodeName("n2")
VERSIONS = iter(range(1, 1000))


def change(kind: Kind, name: str, metadata: Mapping[str, object] | None = None, **parts: object) -> Change:
    named = {"name": name, "resourceVersion": str(next(VERSIONS)), **(metadata or {})}
    body = json.dumps({"metadata": named, **parts}).encode()
    return decode_object(kind, body, {**READERS, Kind.NODE: read_node_state})


def look(before: Surveyed, *changes: Change) -> Surveyed:
    state = before.state
    for one in changes:
        state = apply_changes(state, one.kind, [one])
    return survey(before, state)


def advertisement(*interfaces: str, **spec: object) -> Change:
    return change(Kind.ADVERTISEMENT, "a", spec={"interfaces": list(interfaces), **spec})


POOL = change(Kind.POOL, "office", spec={"addresses": ["192.0.2.0/28"]})
N1 = change(Kind.NODE, "n1", spec={"unschedulable": True})
N2 = change(Kind.NODE, "n2", metadata={"annotations": {"closeby.dev/drain": "perhaps"}})


def test_nodes_advertisements_and_what_is_wrong_are_told() -> None:
    surveyed = look(Surveyed(), POOL, N1, N2, advertisement("eth1"))

    around = describe_around(
        surveyed, Readiness(lost=frozenset({NodeName("n2")})), make_advertising(surveyed), ["a", "", "-"]
    )

    assert around.nodes == {
        "n1": NodeFacts(NodeName("n1"), cordoned=True),
        "n2": NodeFacts(NodeName("n2"), ready=False),
    }
    assert around.whole
    assert around.reaches["a"] == Reach(interfaces=dict.fromkeys(around.nodes, frozenset({"eth1"})))
    assert around.reaches["-"] == Reach(frozenset())
    assert around.problems == ('Node n2: metadata.annotations[closeby.dev/drain]: "perhaps" is neither true nor false',)


def test_an_advertisement_that_becomes_invalid_keeps_its_last_good_version_and_says_so() -> None:
    good = look(Surveyed(), POOL, advertisement("eth1"))

    worse = look(good, advertisement("eth1", "eth1"))

    assert worse.advertisements == good.advertisements
    assert show_problems(worse) == ('L2Advertisement a: spec.interfaces[1]: "eth1" is repeated',)


def test_one_that_was_never_valid_is_not_used_and_one_that_is_deleted_is_gone() -> None:
    assert look(Surveyed(), advertisement("eth1", "eth1")).advertisements == {}

    good = look(Surveyed(), advertisement("eth1"))
    gone = Change(Kind.ADVERTISEMENT, "a", None, version=str(next(VERSIONS)))

    assert look(good, gone).advertisements == {}


def test_a_node_that_can_not_be_read_is_there_and_is_told_of() -> None:
    cordoned = change(Kind.NODE, "n1", spec={"unschedulable": True})
    seen = look(Surveyed(), cordoned, change(Kind.NODE, "n1", spec=3), change(Kind.NODE, "n2", spec=3))

    around = describe_around(seen, Readiness(), make_advertising(seen), [])

    assert around.nodes[N_1].cordoned, "its last readable version stands"
    assert around.nodes[N_2] == NodeFacts(N_2)
    first, second = around.problems
    assert first.startswith("Node n1: unreadable: Expected `object | null`, got `int`")
    assert first.endswith("; its last readable version stands")
    assert second.startswith("Node n2: unreadable: ")
    assert "stands" not in second


def test_a_nodes_heartbeat_is_no_news() -> None:
    state = apply_changes(State(), Kind.NODE, [N1])
    again = change(Kind.NODE, "n1", spec={"unschedulable": True}, status={"images": []})

    assert apply_changes(state, Kind.NODE, [again]).revision == state.revision
