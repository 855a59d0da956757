"""As an owner of a Service I ask for an address, and clients inside and outside are served by it on every node."""

from collections.abc import Iterator

import pytest

from e2e.addresses import NAMESPACE, ControllerProcess, Shop, install
from e2e.cluster.cluster import CLIENTS, Cluster
from e2e.cluster.space import PORT, Space
from e2e.controlplane.waiting import wait_for
from e2e.world.clients import Target

pytestmark = pytest.mark.e2e

HOSTING = {"north-1", "south-1"}


@pytest.fixture
def shop(cluster: Cluster, space: Space) -> Iterator[Shop]:
    """The story's namespace, with a controller that serves it."""
    kubeconfig = install(cluster.plane, cluster.folder)
    controller = ControllerProcess(space.name, kubeconfig, cluster.folder, netns=cluster.world.lan.netns)
    wait_for(controller.leads, "the controller leads")
    made = Shop(cluster.api, space.name)
    yield made
    made.close()
    assert controller.terminate() == 0
    assert "Traceback" not in controller.log()


def test_addresses_of_both_families_are_served_as_soon_as_they_are_given(
    cluster: Cluster, space: Space, shop: Shop
) -> None:
    space.add_pods("web", sorted(HOSTING))
    shop.pool("first", "192.0.2.96/30", "2001:db8:60::/126")
    shop.pool("second", "192.0.2.104/30", "2001:db8:61::/126", autoAssign=False)
    space.add_service("web", type="LoadBalancer")

    shop.await_ips("web", "192.0.2.96", "2001:db8:60::")
    _serves(cluster, shop)
    cluster.api.patch(
        "Service",
        f"{space.name}/web",
        {"metadata": {"annotations": {"metallb.io/address-pool": f"{space.name}-second"}}},
    )
    shop.await_ips("web", "192.0.2.104", "2001:db8:61::")
    _serves(cluster, shop)


def _serves(cluster: Cluster, shop: Shop) -> None:
    ips = shop.ips("web")
    cluster.world.route_outside(ips, "east-1")  # as an announcer on that node would have it
    for ip in ips:
        cluster.await_served(Target("tcp", ip, PORT), dict.fromkeys((*CLIENTS, "outside"), HOSTING))


def test_who_loses_the_lease_stops_no_traffic_and_takes_it_back(cluster: Cluster, space: Space, shop: Shop) -> None:
    space.add_pods("web", sorted(HOSTING))
    shop.pool("first", "192.0.2.96/30", "2001:db8:60::/126")
    space.add_service("web", type="LoadBalancer")
    shop.await_ips("web", "192.0.2.96", "2001:db8:60::")

    cluster.api.patch("Lease", f"{NAMESPACE}/closeby-controller", {"spec": {"holderIdentity": "another"}})
    space.add_service("more", type="LoadBalancer")

    _serves(cluster, shop)
    wait_for(lambda: shop.ips("more"), "it takes the Lease back once the other is silent")
