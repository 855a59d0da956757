from typing import Any

import pytest

from e2e.migration.load import Flow
from e2e.stories.noticed import Lasted
from e2e.stories.shop import Frontend, Groups, are_back, cluster_ip_targets, node_port_targets
from e2e.world.clients import Outcome, Record

FRONT = Frontend("10.96.0.9", "fd00:10:96::9", {"tcp": 30001, "udp": 30002})


def pod(uid: str, restarts: int, *, ready: bool = True) -> dict[str, Any]:
    return {
        "metadata": {"uid": uid},
        "status": {"containerStatuses": [{"restartCount": restarts, "ready": ready}]},
    }


def test_a_service_is_asked_by_both_protocols_at_both_families() -> None:
    asked = {(target.protocol, target.ip, target.port) for target in cluster_ip_targets(FRONT)}

    assert asked == {(protocol, ip, 80) for protocol in ("tcp", "udp") for ip in ("10.96.0.9", "fd00:10:96::9")}


def test_a_node_port_is_the_protocols_own_at_every_address_of_the_node() -> None:
    asked = {(target.protocol, target.ip, target.port) for target in node_port_targets(FRONT, ["192.0.2.1", "::1"])}

    assert asked == {(p, ip, port) for p, port in (("tcp", 30001), ("udp", 30002)) for ip in ("192.0.2.1", "::1")}


@pytest.mark.parametrize(
    ("pods", "back"),
    [
        pytest.param([pod("a", 2), pod("b", 1)], True, id="each once more, and ready"),
        pytest.param([pod("a", 1), pod("b", 1)], False, id="one not yet"),
        pytest.param([pod("a", 2), pod("b", 1, ready=False)], False, id="one not ready"),
        pytest.param([pod("new", 0)], True, id="a new pod in its place"),
    ],
)
def test_pods_are_back_once_each_was_restarted(pods: list[dict[str, Any]], back: bool) -> None:  # noqa: FBT001  # a column
    assert are_back(pods, {"a": 1, "b": 0}) is back


def test_what_clients_saw_is_summed_by_group_and_by_server() -> None:
    groups = Groups(
        {"near": [Record(0, 1.0, 0.1, Outcome.ANSWERED, "near-1@a", "10.244.1.2")], "web": []},
        [Flow("web-1@a", 9, 0, 0, ""), Flow("web-2@b", 9, 0, 0, "reset")],
    )

    assert {group: noticed.attempts for group, noticed in groups.new(0.0).items()} == {"near": 1, "web": 0}
    assert groups.lasting(lambda name: name[-1]) == {"a": Lasted(1, 0, 0, 0), "b": Lasted(1, 1, 0, 0)}
