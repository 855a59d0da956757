"""As an operator I restart or upgrade closeby on a busy node, and nobody notices."""

from pathlib import Path
from typing import Any

import pytest

from e2e.cluster.cluster import CLIENTS, Cluster, every_client
from e2e.cluster.connection import ask, connect
from e2e.cluster.daemon import Daemon
from e2e.cluster.kernel import list_map, list_tables, nft, watched_changes
from e2e.cluster.space import Space, target
from e2e.controlplane.waiting import wait_for
from e2e.world.clients import Outcome, Target, Traffic

pytestmark = pytest.mark.e2e

CLIENT = "client-north-1"
HOSTING = ("north-1", "south-1")
SERVED = every_client(*HOSTING)


def counters(daemon: Daemon, ip: str) -> list[Any]:
    """The elements of the Service's TCP port in the kernel, with their counters."""
    elements = list_map(daemon.site.netns, "ip", "service_ports")
    return [element for element in elements if f"'{ip}', 'tcp'" in str(element)]


@pytest.mark.parametrize("end", ["stop", "kill"], ids=["SIGTERM", "SIGKILL"])
def test_a_restart_adopts_what_it_finds_and_writes_nothing(
    cluster: Cluster, space: Space, end: str, tmp_path: Path
) -> None:
    space.add_pods("web", HOSTING)
    stored = space.add_service("web")
    cluster.await_settled(stored, SERVED)
    web = target(stored)._replace(timeout_s=10.0)
    node = cluster.daemons["north-1"]
    before = counters(node, web.ip)

    with connect(cluster.world.host(CLIENT), web) as connection:
        first = ask(connection)
        with (
            Traffic(cluster.world, {CLIENT: [web]}, interval_s=0.02) as traffic,
            watched_changes(node.site.netns, tmp_path / "changes") as changes,
        ):
            node.kill() if end == "kill" else node.stop()
            without = ask(connection)
            node.start()
            node.await_ready()
            records = traffic.stop()[CLIENT]
        after = ask(connection)

    assert first == without == after
    assert changes.lines() == []
    assert {record.outcome for record in records} == {Outcome.ANSWERED}
    assert packets(counters(node, web.ip)) == packets(before) + len(records) + 1
    assert node.events("table_installed") == []


def packets(elements: list[Any]) -> int:
    (element,) = elements
    return int(element[0]["elem"]["counter"]["packets"])


def test_what_changed_while_the_daemon_was_dead_is_put_right_at_its_start(cluster: Cluster, space: Space) -> None:
    pods = space.add_pods("web", HOSTING)
    gone, kept = target(space.add_service("gone", selector={"app": "web"})), target(space.add_service("web"))
    for service in (gone, kept):
        cluster.await_served(service, SERVED)
    node = cluster.daemons["north-1"]

    node.kill()
    space.set_ready(pods[0], ready=False)
    cluster.api.delete("Service", f"{space.name}/gone")
    new = target(space.add_service("new", selector={"app": "web"}))
    cluster.await_served(kept, {client: {"south-1"} for client in CLIENTS if client != CLIENT})
    cluster.await_served(kept, {CLIENT: set(HOSTING)})  # as it was
    node.start()

    for service in (kept, new):
        cluster.await_served(service, {CLIENT: {"south-1"}})
    assert set(cluster.ask(CLIENT, gone._replace(tries=4, timeout_s=0.3)).outcomes) == {Outcome.TIMED_OUT}


def test_cleanup_removes_our_tables_and_no_others(cluster: Cluster, space: Space) -> None:
    space.add_pods("web", HOSTING)
    web = target(space.add_service("web"))
    cluster.await_served(web, SERVED)
    node = cluster.daemons["north-1"]
    foreign = {"ip theirs", "ip6 theirs", "inet closeby"}  # the last one has our name, and isn't ours
    for table in foreign:
        nft(node.site.netns, f"add table {table}; add chain {table} kept")

    refused = node.command("cleanup")
    node.stop()
    assert list_tables(node.site.netns) == {"ip closeby", "ip6 closeby", *foreign}
    cleanup = node.command("cleanup")
    again = node.command("cleanup")

    assert (refused.code, cleanup.code, again.code) == (1, 0, 0)
    assert "another closeby runs here" in refused.error
    assert list_tables(node.site.netns) == foreign
    assert "chain kept" in nft(node.site.netns, "list table ip theirs")
    assert Outcome.ANSWERED not in cluster.ask(CLIENT, web._replace(tries=4, timeout_s=0.3)).outcomes
    for table in foreign:
        nft(node.site.netns, f"delete table {table}")
    node.start()
    cluster.await_served(web, SERVED)


def test_a_connection_lives_on_when_its_pod_leaves_the_service_and_when_the_service_goes(
    cluster: Cluster, space: Space
) -> None:
    (pod,) = space.add_pods("web", ["south-1"])
    web = target(space.add_service("web"))
    cluster.await_served(web, {CLIENT: {"south-1"}})

    with connect(cluster.world.host(CLIENT), web) as connection:
        first = ask(connection)
        space.add_pods("web", ["north-2"])
        space.set_ready(pod, ready=False)
        cluster.await_served(web, {CLIENT: {"north-2"}})
        unready = ask(connection)
        cluster.api.delete("Service", f"{space.name}/web")
        wait_for(lambda: Outcome.ANSWERED not in tries(cluster, web), "the Service is gone")
        gone = ask(connection)

    assert first == unready == gone


def tries(cluster: Cluster, web: Target) -> set[Outcome]:
    return set(cluster.ask(CLIENT, web._replace(tries=4, timeout_s=0.3)).outcomes)


def test_a_second_daemon_on_a_node_ends_with_a_plain_sentence(cluster: Cluster) -> None:
    node = cluster.daemons["east-1"]

    ended = node.run("run", "--kubeconfig", str(cluster.kubeconfig), "--control-socket", str(node.socket))

    assert ended.code == 1
    assert ended.error.startswith("closeby: another closeby runs here")
