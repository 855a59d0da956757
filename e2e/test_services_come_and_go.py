"""As an operator I delete, recreate and relabel Services, and nodes answer for exactly those that are theirs."""

import pytest

from e2e.cluster.cluster import CLIENTS, NAMES, Cluster, every_client
from e2e.cluster.kernel import list_map
from e2e.cluster.space import Space, target
from e2e.controlplane.waiting import wait_for
from e2e.world.clients import Outcome, Target

pytestmark = pytest.mark.e2e

OTHER_IP = "10.96.77.77"
SERVED = every_client("north-1", "south-1")


def await_outcome(cluster: Cluster, client: str, target: Target, outcome: Outcome) -> None:
    def seen() -> bool:
        return set(cluster.ask(client, target._replace(tries=8, timeout_s=0.3)).outcomes) == {outcome}

    wait_for(seen, f"{target} is {outcome} for {client}")


def mentions(cluster: Cluster, node: str, ip: str) -> bool:
    return f"'{ip}'" in str(list_map(cluster.daemons[node].site.netns, "ip", "service_ports"))


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_a_service_recreated_with_another_address_answers_there_and_only_there(
    cluster: Cluster, space: Space, protocol: str
) -> None:
    space.add_pods("web", ("north-1", "south-1"))
    space.add_pods("other", ("north-2", "east-1"))
    old = target(space.add_service("web"), protocol)
    cluster.await_served(old, SERVED)

    cluster.api.delete("Service", f"{space.name}/web")
    new = target(space.add_service("web", clusterIP=OTHER_IP, selector={"app": "other"}), protocol)

    # Slices go by the Service's name: until the controllers have replaced its predecessor's, those serve it.
    cluster.await_served(new, every_client("north-2", "east-1"))
    for client in CLIENTS:
        await_outcome(cluster, client, old, Outcome.TIMED_OUT)  # an address that no Service has: dropped
    assert new.ip == OTHER_IP


def test_a_service_that_is_labelled_away_vanishes_and_comes_back(cluster: Cluster, space: Space) -> None:
    label = "service.kubernetes.io/service-proxy-name"
    space.add_pods("web", ("north-1", "south-1"))
    web = target(space.add_service("web"))
    cluster.await_served(web, SERVED)

    cluster.api.patch("Service", f"{space.name}/web", {"metadata": {"labels": {label: "other"}}})
    for name in NAMES:
        wait_for(lambda name=name: not mentions(cluster, name, web.ip), f"{name} has no rule for it")  # type: ignore[misc]
        await_outcome(cluster, f"client-{name}", web, Outcome.TIMED_OUT)
    cluster.api.patch("Service", f"{space.name}/web", {"metadata": {"labels": {label: None}}})

    cluster.await_served(web, SERVED)


def test_a_service_refuses_while_it_has_no_pod_that_is_ready(cluster: Cluster, space: Space) -> None:
    web = target(space.add_service("web"))
    clients = ("client-north-1", "north-1")
    for client in clients:
        await_outcome(cluster, client, web, Outcome.REFUSED)

    (pod,) = space.add_pods("web", ["east-1"])
    cluster.await_served(web, {client: {"east-1"} for client in clients})
    space.set_ready(pod, ready=False)

    for client in clients:
        await_outcome(cluster, client, web, Outcome.REFUSED)


def test_another_port_of_a_services_address_refuses(cluster: Cluster, space: Space) -> None:
    space.add_pods("web", ["east-1"])
    web = target(space.add_service("web"))
    cluster.await_served(web, {"client-north-1": {"east-1"}})

    await_outcome(cluster, "client-north-1", web._replace(port=81), Outcome.REFUSED)
