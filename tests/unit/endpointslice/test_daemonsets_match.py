"""Which DaemonSet is behind a Service, which pods may be its, and how many nodes it must cover."""

import pytest

from endpointslice.daemonsets import (
    NotOne,
    match_daemon_set,
    may_own,
    wanted_nodes,
)
from endpointslice.types import (
    DaemonSet,
    DaemonSetName,
    PodName,
)
from tests.builders import daemon_set, service
from tests.unit.endpointslice.daemon_set_world import AGENT


@pytest.mark.parametrize(
    ("fields", "ready_nodes", "wanted"),
    [
        pytest.param({"desired": 3}, None, 2, id="all but one"),
        pytest.param({"desired": 3}, 6, 2, id="its own status beats the number of Ready nodes"),
        pytest.param({"desired": 1}, None, 0, id="a single node needs none"),
        pytest.param({"desired": 0}, 6, -1, id="meant for no node"),
        pytest.param({"desired": 10, "max_unavailable": "3"}, None, 7, id="maxUnavailable 3"),
        pytest.param({"desired": 10, "max_unavailable": "0"}, None, 9, id="maxUnavailable 0 (maxSurge) allows one"),
        pytest.param({"desired": 10, "max_unavailable": "25%"}, None, 7, id="25% of 10 rounds up to 3"),
        pytest.param({"desired": 10, "max_unavailable": "0%"}, None, 9, id="0% allows one"),
        pytest.param({"desired": 10, "max_unavailable": "many"}, None, 9, id="what isn't a number allows one"),
        pytest.param({"desired": 10, "max_unavailable": "-3"}, None, 9, id="a negative number allows one"),
        pytest.param({"desired": None}, 5, 4, id="no status: the folder's Ready nodes"),
        pytest.param({"desired": None, "max_unavailable": "50%"}, 5, 2, id="no status: a percentage of those"),
        pytest.param({"desired": None}, None, -1, id="no status and no nodes: covering"),
    ],
)
def test_how_many_nodes_must_be_covered(fields: dict[str, object], ready_nodes: int | None, wanted: int) -> None:
    assert wanted == wanted_nodes(daemon_set(**fields), ready_nodes)


@pytest.mark.parametrize(
    ("selector", "daemon_sets", "expected"),
    [
        pytest.param({("app", "web")}, [daemon_set()], AGENT, id="equal labels"),
        pytest.param(
            {("app", "web")},
            [daemon_set(template_labels=frozenset({("app", "web"), ("v", "1")}))],
            AGENT,
            id="more labels than selected",
        ),
        pytest.param({("app", "web"), ("v", "1")}, [daemon_set()], NotOne.NO_DAEMON_SET, id="fewer labels"),
        pytest.param({("app", "web")}, [daemon_set("other/agent")], NotOne.NO_DAEMON_SET, id="another namespace"),
        pytest.param(
            {("app", "web")}, [daemon_set("default-2/agent")], NotOne.NO_DAEMON_SET, id="a namespace that begins alike"
        ),
        pytest.param(set(), [daemon_set()], NotOne.NO_SELECTOR, id="no selector selects nothing"),
        pytest.param({("app", "web")}, [], NotOne.NO_DAEMON_SET, id="no DaemonSets"),
        pytest.param(
            {("app", "web")}, [daemon_set(), daemon_set("default/agent-2")], NotOne.SEVERAL, id="two that match"
        ),
    ],
)
def test_the_daemon_set_behind_a_service(
    selector: set[tuple[str, str]], daemon_sets: list[DaemonSet], expected: DaemonSetName | NotOne
) -> None:
    assert expected == match_daemon_set(service(selector=frozenset(selector)), daemon_sets)


@pytest.mark.parametrize(
    ("name", "may"),
    [
        ("default/agent-55zdq", True),
        ("default/agent-x-55zdq", False),
        ("default/agent-55zd", False),
        ("default/agent-55zdqq", False),
        ("default/agent-55ZDQ", False),
        ("default/agent-55zdq\n", False),
        ("default/agent55zdq", False),
        ("default/agent", False),
        ("other/agent-55zdq", False),
    ],
)
def test_names_that_the_controller_gives(name: str, *, may: bool) -> None:
    assert may == may_own(AGENT, PodName(name))
