"""As an owner of a Service I ask for close endpoints, and the slice controller's own hints bring my clients there."""

import pytest

from e2e.cluster.cluster import Cluster, every_client
from e2e.cluster.space import Space, target

pytestmark = pytest.mark.e2e

NORTH = {"north-1", "north-2"}
SERVING = ("north-1", "north-2", "south-1")  # nothing in the east
EVERYWHERE = set(SERVING)
BY_ZONE = {
    "client-north-1": NORTH,
    "client-north-2": NORTH,
    "client-south-1": {"south-1"},
    "client-east-1": EVERYWHERE,
}
BY_NODE = {**BY_ZONE, "client-north-1": {"north-1"}, "client-north-2": {"north-2"}}


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize(
    ("distribution", "expected"),
    [
        pytest.param(None, every_client(*SERVING), id="without a preference everywhere"),
        pytest.param("PreferClose", BY_ZONE, id="PreferClose keeps to the zone"),
        pytest.param("PreferSameZone", BY_ZONE, id="PreferSameZone keeps to the zone"),
        pytest.param("PreferSameNode", BY_NODE, id="PreferSameNode keeps to the node"),
    ],
)
def test_each_client_is_served_from_as_near_as_was_asked_for(
    cluster: Cluster, space: Space, distribution: str | None, expected: dict[str, set[str]], protocol: str
) -> None:
    space.add_pods("web", SERVING)
    web = space.add_service("web", trafficDistribution=distribution)

    for ip in web["spec"]["clusterIPs"]:
        cluster.await_served(target(web, protocol, ip=ip), expected)
