"""As an operator I lose the API server for a while: traffic goes on, nothing is removed, and what changed arrives."""

import time

import pytest

from e2e.cluster.cluster import CLIENTS, NAMES, Cluster, every_client
from e2e.cluster.daemon import HEALTHZ_PORT
from e2e.cluster.kernel import watched_changes
from e2e.cluster.space import Space, target
from e2e.controlplane.waiting import wait_for
from e2e.world.clients import Outcome, Traffic

pytestmark = pytest.mark.e2e

OUTAGE_S = 30.0
INTERVAL_S = 0.05
SERVED = every_client("north-1", "south-1")


def test_traffic_goes_on_while_the_api_server_is_away_and_later_changes_arrive(cluster: Cluster, space: Space) -> None:
    space.add_pods("web", ("north-1", "south-1"))
    stored = space.add_service("web")
    cluster.await_settled(stored, SERVED)
    web = target(stored)
    node = cluster.daemons["north-2"]

    with (
        Traffic(cluster.world, {client: [web._replace(timeout_s=10.0)] for client in CLIENTS}, INTERVAL_S) as traffic,
        watched_changes(node.site.netns, cluster.folder / f"{space.name}.changes") as changes,
    ):
        cluster.plane.stop_apiserver()
        time.sleep(OUTAGE_S)
        unchanged = changes.lines()
        assert node.http(HEALTHZ_PORT, "/healthz")[0] == 200
        cluster.end_outage()
        space.add_pods("web", ["east-1"])
        cluster.await_served(web, every_client("north-1", "south-1", "east-1"))
        records = traffic.stop()

    assert unchanged == []
    for client, attempts in records.items():
        assert len(attempts) > OUTAGE_S / INTERVAL_S / 2, client
        assert {attempt.outcome for attempt in attempts} == {Outcome.ANSWERED}, client


def test_a_daemon_whose_history_was_compacted_away_lists_anew_and_is_right(cluster: Cluster, space: Space) -> None:
    pods = space.add_pods("web", ("north-1", "south-1"))
    gone, kept = target(space.add_service("gone", selector={"app": "web"})), target(space.add_service("web"))
    for service in (gone, kept):
        cluster.await_served(service, SERVED)
    node = cluster.daemons["north-2"]

    node.pause()
    space.set_ready(pods[0], ready=False)
    cluster.api.delete("Service", f"{space.name}/gone")
    new = target(space.add_service("new", selector={"app": "web"}))
    cluster.await_served(new, {"client-north-1": {"south-1"}})  # the others know
    cluster.plane.compact()
    cluster.plane.restart_controllers()
    node.resume()

    for service in (kept, new):
        cluster.await_served(service, every_client("south-1"))
    wait_for(
        lambda: (
            set(cluster.ask("client-north-2", gone._replace(tries=4, timeout_s=0.3)).outcomes) == {Outcome.TIMED_OUT}
        ),
        "the deleted Service is gone",
    )
    assert {event["kind"] for event in node.events("watch_expired")} & {"Service", "EndpointSlice"}


def test_a_daemon_that_starts_without_the_api_server_keeps_the_rules_it_finds(cluster: Cluster, space: Space) -> None:
    space.add_pods("web", ("north-1", "south-1"))
    web = target(space.add_service("web"))
    cluster.await_served(web, SERVED)
    node = cluster.daemons["south-1"]

    node.stop()
    cluster.plane.stop_apiserver()
    node.start()
    # It asks the API server before it has servers of its own.
    wait_for(lambda: node.events("started") and node.events("watch_lost"), "it says that the API server is away")
    assert node.http(HEALTHZ_PORT, "/readyz")[0] == 503
    assert node.http(HEALTHZ_PORT, "/healthz")[0] == 200
    assert node.metric("closeby_source_connected") == 0
    cluster.await_served(web, SERVED)

    cluster.end_outage()
    space.add_pods("web", ["east-1"])
    node.await_ready()
    wait_for(lambda: node.metric("closeby_source_connected", kind="Service") == 1, "Services are watched again")
    cluster.await_served(web, every_client("north-1", "south-1", "east-1"))
    assert node.events("table_installed") == []


def test_a_daemon_that_starts_without_rules_and_without_the_api_server_serves_once_it_comes(
    cluster: Cluster, space: Space
) -> None:
    space.add_pods("web", NAMES)
    web = target(space.add_service("web"))
    node = cluster.daemons["east-1"]
    node.stop()
    assert node.command("cleanup").code == 0
    cluster.plane.stop_apiserver()

    node.start()
    wait_for(lambda: node.events("watch_lost"), "it says that the API server is away")
    cluster.end_outage()

    node.await_ready()
    cluster.await_served(web, every_client(*NAMES))
