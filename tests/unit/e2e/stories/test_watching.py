from typing import Any

import pytest

from e2e.stories.watching import is_ready, serving_on


def endpoint(node: str | None, conditions: dict[str, bool] | None) -> dict[str, Any]:
    return {"nodeName": node, "conditions": conditions}


@pytest.mark.parametrize(
    ("endpoints", "number"),
    [
        pytest.param([endpoint("a", {"ready": True}), endpoint("b", {"ready": True})], 1, id="only its own"),
        pytest.param([endpoint("a", {"ready": False})], 0, id="not an unready one"),
        pytest.param([endpoint("a", {}), endpoint("a", None)], 2, id="without a condition it is ready"),
        pytest.param([endpoint(None, {"ready": True})], 0, id="on no node"),
        pytest.param(None, 0, id="a slice without endpoints"),
    ],
)
def test_ready_endpoints_of_a_node(endpoints: list[dict[str, Any]] | None, number: int) -> None:
    assert serving_on({"endpoints": endpoints}, "a") == number


@pytest.mark.parametrize(("status", "ready"), [("True", True), ("False", False), ("Unknown", False)])
def test_a_node_is_ready_while_its_condition_says_so(status: str, ready: bool) -> None:  # noqa: FBT001  # a column
    conditions = [{"type": "MemoryPressure", "status": "True"}, {"type": "Ready", "status": status}]

    assert is_ready({"status": {"conditions": conditions}}) is ready


def test_a_new_node_is_not_ready() -> None:
    assert not is_ready({"status": {}})
