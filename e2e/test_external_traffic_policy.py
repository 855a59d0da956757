"""As an owner of a Service I switch externalTrafficPolicy while it serves, to see my clients' addresses or not."""

import pytest

from e2e.cluster.cluster import NAMES, Cluster
from e2e.cluster.space import PORT, Space
from e2e.controlplane.waiting import wait_for
from e2e.world.clients import Outcome, Target

pytestmark = pytest.mark.e2e

HOSTING = ("north-1", "south-1")
VIP = "192.0.2.80"


def own_addresses(cluster: Cluster, name: str) -> set[str]:
    node = cluster.world.nodes[name]
    return {node.host.ipv4, node.host.ipv6, *node.gateways}


def await_dropped(cluster: Cluster, client: str, target: Target) -> None:
    def dropped() -> bool:
        return set(cluster.ask(client, target._replace(tries=8, timeout_s=0.3)).outcomes) == {Outcome.TIMED_OUT}

    wait_for(dropped, f"{target} is dropped for {client}")


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_a_node_port_shows_the_clients_address_under_local_and_serves_on_every_node_under_cluster(
    cluster: Cluster, space: Space, protocol: str, family: str
) -> None:
    space.add_pods("web", HOSTING)
    web = space.add_service("web", type="NodePort", externalTrafficPolicy="Cluster")
    port = next(p["nodePort"] for p in web["spec"]["ports"] if p["protocol"] == protocol.upper())
    at = {name: Target(protocol, getattr(cluster.world.host(name), family), port) for name in NAMES}
    client = getattr(cluster.world.outside, family)

    def serves_on_every_node() -> None:
        for name in NAMES:
            tally = cluster.await_served(at[name], {"outside": set(HOSTING)})["outside"]
            assert set(tally.sources) <= own_addresses(cluster, name)

    serves_on_every_node()
    cluster.api.patch("Service", f"{space.name}/web", {"spec": {"externalTrafficPolicy": "Local"}})
    for name in HOSTING:
        tally = cluster.await_served(at[name], {"outside": {name}})["outside"]
        assert set(tally.sources) == {client}
    for name in set(NAMES) - set(HOSTING):
        await_dropped(cluster, "outside", at[name])
        cluster.await_served(at[name], {f"client-{name}": set(HOSTING), name: set(HOSTING)})  # the short circuit
    cluster.api.patch("Service", f"{space.name}/web", {"spec": {"externalTrafficPolicy": "Cluster"}})
    serves_on_every_node()


def test_a_load_balancers_address_follows_the_policy_on_the_node_that_it_arrives_at(
    cluster: Cluster, space: Space
) -> None:
    pods = dict(zip(HOSTING, space.add_pods("web", HOSTING), strict=True))
    space.add_service("web", type="LoadBalancer", externalTrafficPolicy="Local")
    ingress = {"ip": VIP, "ipMode": "VIP"}
    cluster.api.patch_status("Service", f"{space.name}/web", {"loadBalancer": {"ingress": [ingress]}})
    vip = Target("tcp", VIP, PORT)

    cluster.world.route_outside([VIP], "south-1")
    tally = cluster.await_served(vip, {"outside": {"south-1"}})["outside"]
    assert set(tally.sources) == {cluster.world.outside.ipv4}

    space.drain_pod(pods["south-1"])  # nobody else here: the one that drains goes on serving
    wait_for(lambda: _draining(cluster, space), "the slice says that the pod terminates")
    cluster.await_served(vip, {"outside": {"south-1"}, "client-south-1": {"north-1"}})

    cluster.world.route_outside([VIP], "east-1")
    await_dropped(cluster, "outside", vip)
    cluster.await_served(vip, {"client-east-1": {"north-1"}, "east-1": {"north-1"}})
    cluster.api.patch("Service", f"{space.name}/web", {"spec": {"externalTrafficPolicy": "Cluster"}})
    tally = cluster.await_served(vip, {"outside": {"north-1"}})["outside"]
    assert set(tally.sources) <= own_addresses(cluster, "east-1")


def _draining(cluster: Cluster, space: Space) -> bool:
    slices = cluster.api.items("EndpointSlice", space.name)
    return any(endpoint["conditions"].get("terminating") for item in slices for endpoint in item["endpoints"] or ())
