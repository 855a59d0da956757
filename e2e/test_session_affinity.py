"""As an owner of a Service that keeps sessions in its pods I set sessionAffinity: ClientIP, and change my mind."""

from collections import Counter

import pytest

from e2e.cluster.cluster import Cluster, every_client
from e2e.cluster.kernel import list_rules
from e2e.cluster.space import Space, target
from e2e.controlplane.waiting import wait_for
from e2e.world.clients import Target

pytestmark = pytest.mark.e2e

HOSTING = ("north-1", "south-1", "east-1")
VIP = "192.0.2.81"
CLIENTS = ("client-north-1", "client-north-2", "outside")
STICKY = {"sessionAffinity": "ClientIP"}
TRIES = 12
NODE = "north-2"  # what the outside client comes through


def answers(cluster: Cluster, client: str, at: Target, tries: int = TRIES) -> Counter[str]:
    tally = cluster.ask(client, at._replace(tries=tries, timeout_s=5.0))
    assert tally.failed <= 1, f"{client} at {at}: {tally.outcomes}"  # a binding of old heals by one lost datagram
    return tally.answers


def one_server(cluster: Cluster, client: str, at: Target) -> str:
    """The pod that answers every one of this client's tries."""
    answers(cluster, client, at, tries=2)
    (server,) = answers(cluster, client, at)
    return server


def frontends(cluster: Cluster, space: Space, protocol: str) -> list[Target]:
    """The Service's ClusterIP, and on NODE the load balancer's address and the NodePort."""
    web = cluster.api.get("Service", f"{space.name}/web")
    port = next(p["nodePort"] for p in web["spec"]["ports"] if p["protocol"] == protocol.upper())
    return [
        target(web, protocol),
        target(web, protocol, ip=VIP),
        Target(protocol, cluster.world.host(NODE).ipv4, port),
    ]


def start(cluster: Cluster, space: Space) -> tuple[str, ...]:
    pods = space.add_pods("web", HOSTING)
    space.add_service("web", type="LoadBalancer")
    ingress = [{"ip": VIP, "ipMode": "VIP"}]
    cluster.api.patch_status("Service", f"{space.name}/web", {"loadBalancer": {"ingress": ingress}})
    cluster.world.route_outside([VIP, "10.96.0.0/16"], NODE)
    for protocol in ("tcp", "udp"):
        cluster.await_served(frontends(cluster, space, protocol)[1], {"outside": set(HOSTING)})
        cluster.await_served(frontends(cluster, space, protocol)[0], every_client(*HOSTING))
    return pods


def await_sticky(cluster: Cluster, space: Space, client: str, *, sticky: bool) -> None:
    at = frontends(cluster, space, "tcp")[1 if client == "outside" else 0]
    wait_for(lambda: (len(answers(cluster, client, at, tries=30)) == 1) == sticky, f"sticky for {client}: {sticky}")


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_a_client_stays_with_one_pod_at_every_address_until_affinity_is_switched_off(
    cluster: Cluster, space: Space, protocol: str
) -> None:
    start(cluster, space)

    cluster.api.patch("Service", f"{space.name}/web", {"spec": STICKY})
    for client in CLIENTS:
        await_sticky(cluster, space, client, sticky=True)

    cluster_ip, vip, node_port = frontends(cluster, space, protocol)
    assert {one_server(cluster, "outside", at) for at in (vip, cluster_ip, node_port)} == {
        one_server(cluster, "outside", vip)
    }
    for client in CLIENTS[:2]:
        assert one_server(cluster, client, cluster_ip) == one_server(cluster, client, cluster_ip)

    cluster.api.patch("Service", f"{space.name}/web", {"spec": {"sessionAffinity": "None"}})
    for client in CLIENTS:
        await_sticky(cluster, space, client, sticky=False)
    cluster.await_served(vip, {"outside": set(HOSTING)})


def test_a_binding_outlives_a_restart_of_the_daemon_and_ends_with_its_pod(cluster: Cluster, space: Space) -> None:
    pods = dict(zip(start(cluster, space), HOSTING, strict=True))
    cluster.api.patch("Service", f"{space.name}/web", {"spec": STICKY})
    await_sticky(cluster, space, "outside", sticky=True)
    vip = frontends(cluster, space, "tcp")[1]
    first = one_server(cluster, "outside", vip)
    daemon = cluster.daemons[NODE]

    daemon.kill()
    down = one_server(cluster, "outside", vip)
    daemon.start()
    daemon.await_ready()
    again = one_server(cluster, "outside", vip)
    space.set_ready(first, ready=False)
    wait_for(lambda: first not in answers(cluster, "outside", vip), "the pod that isn't ready is left")
    second = one_server(cluster, "outside", vip)
    space.set_ready(first, ready=True)
    cluster.await_served(frontends(cluster, space, "udp")[0], {"client-south-1": {one_node(cluster, space)}})

    assert first == down == again
    assert second in pods.keys() - {first}
    assert one_server(cluster, "outside", vip) == second
    assert daemon.events("table_installed") == []


def one_node(cluster: Cluster, space: Space) -> str:
    """The node of the pod that client-south-1 is bound to."""
    return cluster.world.pods[one_server(cluster, "client-south-1", frontends(cluster, space, "udp")[0])].node


def test_a_binding_ends_when_its_time_is_over(cluster: Cluster, space: Space) -> None:
    start(cluster, space)
    config = {"clientIP": {"timeoutSeconds": 1}}
    cluster.api.patch("Service", f"{space.name}/web", {"spec": {**STICKY, "sessionAffinityConfig": config}})
    await_sticky(cluster, space, "outside", sticky=True)
    vip = frontends(cluster, space, "tcp")[1]

    def one_answer() -> str:
        """Of one connection: a second one may come after the binding's end."""
        (server,) = answers(cluster, "outside", vip, tries=1)
        return server

    first = one_answer()

    def another() -> bool:
        server = one_answer()
        wait_for(lambda: not bound(cluster), "the binding ended")
        return server != first

    wait_for(another, "after its time, a client meets another pod")


def bound(cluster: Cluster) -> bool:
    """Whether the outside client has a binding on NODE, as far as nft lists."""
    return f"{cluster.world.outside.ipv4} expires" in list_rules(cluster.daemons[NODE].site.netns)
