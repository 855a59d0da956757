"""As an operator I delete a Node, or give it another address, and its closeby ends so that it is started anew."""

from collections.abc import Callable

import pytest

from e2e.cluster.cluster import Cluster
from e2e.cluster.daemon import HEALTHZ_PORT, Daemon
from e2e.cluster.kernel import list_rules
from e2e.controlplane.objects import node_status
from e2e.controlplane.waiting import wait_for

pytestmark = pytest.mark.e2e

NODE = "east-1"
OTHER_IP = "172.30.0.77"


def ends(daemon: Daemon) -> int:
    """Its exit code, once it has ended by itself."""
    wait_for(lambda: daemon.running.exit_code is not None, "the daemon ends by itself")
    return daemon.stop()


def delete(cluster: Cluster) -> None:
    cluster.api.delete("Node", NODE)


def move(cluster: Cluster) -> None:
    host = cluster.world.host(NODE)
    cluster.api.patch_status("Node", NODE, node_status(addresses=(OTHER_IP, host.ipv6)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(delete, f"the Node {NODE} was deleted", id="deleted"),
        pytest.param(move, f"the Node {NODE} changed its address", id="another address"),
    ],
)
def test_the_daemon_ends_with_a_sentence_and_leaves_its_rules(
    cluster: Cluster, change: Callable[[Cluster], None], said: str
) -> None:
    daemon = cluster.daemons[NODE]

    change(cluster)
    code = ends(daemon)
    rules = list_rules(daemon.site.netns)
    cluster.add_node(NODE)
    daemon.start()
    daemon.await_ready()

    assert code == 1
    assert f"closeby: {said}" in daemon.log_file.read_text()
    assert "service_ports" in rules


def test_a_daemon_without_a_node_object_runs_and_takes_it_in_when_it_comes(cluster: Cluster) -> None:
    daemon = cluster.daemons[NODE]
    cluster.api.delete("Node", NODE)
    assert ends(daemon) == 1

    daemon.start()
    daemon.await_ready()
    cluster.add_node(NODE)

    wait_for(lambda: cluster.world.host(NODE).ipv4 in list_rules(daemon.site.netns), "NodePorts answer on its address")
    assert daemon.http(HEALTHZ_PORT, "/livez")[0] == 200
