"""As an operator I hide slices by their labels, and widen the ClusterIPs' range, while nodes serve."""

import json
from collections.abc import Iterator

import pytest

from e2e.cluster.cluster import CLIENTS, NAMES, Cluster
from e2e.cluster.kernel import nft
from e2e.cluster.space import POD_PORT, PORT, Space, target
from e2e.controlplane.api import ApiError, Object
from e2e.controlplane.waiting import wait_for
from e2e.world.clients import Outcome, Target

pytestmark = pytest.mark.e2e

HEADLESS = "service.kubernetes.io/headless"
RANGE = "10.112.0.0/24"
IN_RANGE = "10.112.0.9"


def by_hand(space: Space, cluster: Cluster, pod: str, node: str) -> str:
    """A slice of the Service "web" that no controller owns; its name."""
    name = f"by-hand-{node}"
    cluster.api.apply(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": space.name, "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4",
            "ports": [{"name": "tcp", "protocol": "TCP", "port": POD_PORT}],
            "endpoints": [{"addresses": [cluster.world.host(pod).ipv4], "nodeName": node}],
        }
    )
    return f"{space.name}/{name}"


def test_a_slice_that_is_labelled_away_takes_its_endpoints_along_and_brings_them_back(
    cluster: Cluster, space: Space
) -> None:
    pods = space.add_pods("web", ["north-1", "south-1"])
    web = target(space.add_service("web", selector={}))
    cluster.api.patch("Service", f"{space.name}/web", {"spec": {"selector": None}})
    _kept, hidden = (by_hand(space, cluster, *one) for one in zip(pods, ("north-1", "south-1"), strict=True))
    both = {client: {"north-1", "south-1"} for client in CLIENTS}
    cluster.await_served(web, both)

    cluster.api.patch("EndpointSlice", hidden, {"metadata": {"labels": {HEADLESS: ""}}})
    cluster.await_served(web, {client: {"north-1"} for client in CLIENTS})
    cluster.api.patch("EndpointSlice", hidden, {"metadata": {"labels": {HEADLESS: None}}})

    cluster.await_served(web, both)


def test_the_headless_label_hides_a_service_with_an_address_where_the_api_server_is_older_than_1_36(
    cluster: Cluster, space: Space
) -> None:
    older = int(json.loads(cluster.plane.kubectl("get", "--raw", "/version"))["minor"]) < 36
    space.add_pods("web", ["north-1"])
    web = target(space.add_service("web"))
    served = {client: {"north-1"} for client in CLIENTS}
    cluster.await_served(web, served)

    cluster.api.patch("Service", f"{space.name}/web", {"metadata": {"labels": {HEADLESS: ""}}})
    cluster.await_served(target(space.add_service("later", selector={"app": "web"})), served)  # so the label is known

    if older:
        asked = cluster.ask("client-south-1", web._replace(tries=8, timeout_s=0.3))
        assert set(asked.outcomes) == {Outcome.TIMED_OUT}
        cluster.api.patch("Service", f"{space.name}/web", {"metadata": {"labels": {HEADLESS: None}}})
    cluster.await_served(web, served)


def dropped_ranges(cluster: Cluster, node: str) -> str:
    return nft(cluster.daemons[node].site.netns, "list", "set", "ip", "closeby", "service_cidrs")


@pytest.fixture
def more(cluster: Cluster) -> Iterator[str]:
    """A second range, taken away at the end."""
    spec = {"cidrs": [RANGE]}
    cluster.api.apply(
        {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "more"}, "spec": spec}
    )
    yield RANGE
    cluster.api.delete("ServiceCIDR", "more")
    for name in NAMES:
        wait_for(lambda name=name: RANGE not in dropped_ranges(cluster, name), f"{name} forgets it")  # type: ignore[misc]


def add_in_range(space: Space) -> Object | None:
    """The Service; None while the API server doesn't know that the range is ready."""
    try:
        return space.add_service("web", clusterIP=IN_RANGE)
    except ApiError as error:
        if error.code != 422:
            raise
        return None


def test_a_range_that_is_added_drops_and_serves_at_once(cluster: Cluster, space: Space, more: str) -> None:
    space.add_pods("web", ["north-1"])
    for name in NAMES:
        wait_for(lambda name=name: more in dropped_ranges(cluster, name), f"{name} drops what isn't allocated in it")  # type: ignore[misc]
    unused = Target("tcp", IN_RANGE, PORT, tries=8, timeout_s=0.3)
    assert set(cluster.ask("client-south-1", unused).outcomes) == {Outcome.TIMED_OUT}

    web = target(wait_for(lambda: add_in_range(space), "the API gives addresses of it"))

    assert web.ip == IN_RANGE
    cluster.await_served(web, {client: {"north-1"} for client in CLIENTS})
    cluster.api.delete("Service", f"{space.name}/web")
