"""As an owner of Services I ask for odd things (one address twice, a node as endpoint), and the answer is stable."""

import json
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.cluster.cluster import CLIENTS, NAMES, Cluster, every_client
from e2e.cluster.space import POD_PORT, PORT, Space, target
from e2e.controlplane.waiting import wait_for
from e2e.world.clients import Target
from e2e.world.netns import command_in
from e2e.world.processes import start_program, stop_programs, wait_ready

pytestmark = pytest.mark.e2e

EXTERNAL_IP = "192.0.2.50"
HOST = "north-2"


def skipped(cluster: Cluster, node: str) -> list[Any]:
    done = cluster.daemons[node].command("plan", "-o", "json")
    assert done.code == 0, done.error
    found: list[Any] = json.loads(done.output)["skipped"]
    return found


def test_of_two_services_with_one_external_address_the_older_has_it_and_the_other_is_told(
    cluster: Cluster, space: Space
) -> None:
    space.add_pods("old", ["north-1"])
    space.add_pods("new", ["south-1"])
    cluster.world.route_outside([EXTERNAL_IP], "north-2")
    shared = Target("tcp", EXTERNAL_IP, PORT)
    first = {"outside": {"north-1"}, "client-east-1": {"north-1"}}

    space.add_service("old", externalIPs=[EXTERNAL_IP])
    time.sleep(1.1)  # the API keeps ages in seconds
    space.add_service("new", externalIPs=[EXTERNAL_IP])
    new = target(cluster.api.get("Service", f"{space.name}/new"))
    cluster.await_served(new, every_client("south-1"))
    cluster.await_served(shared, first)
    told = skipped(cluster, "east-1")
    daemon = cluster.daemons["north-2"]
    daemon.stop()
    daemon.start()
    daemon.await_ready()
    cluster.await_served(shared, first)
    cluster.api.delete("Service", f"{space.name}/old")
    cluster.await_served(shared, {"outside": {"south-1"}, "client-east-1": {"south-1"}})

    lost = {part["object"]: part for part in told if part["reason"] == "frontend-taken"}
    assert set(lost) == {f"Service {space.name}/new ExternalIP {EXTERNAL_IP}:{PORT}/{p}" for p in ("TCP", "UDP")}
    assert {part["detail"] for part in lost.values()} == {f"{space.name}/old has it"}


@pytest.fixture
def host_server(cluster: Cluster) -> Iterator[str]:
    """A server on a node itself, as a pod with hostNetwork has one; its name."""
    process = start_program(cluster.world.host(HOST).netns, "server", [HOST, f"tcp:{POD_PORT}", f"udp:{POD_PORT}"])
    wait_ready(process, f"the server on {HOST}")
    yield HOST
    stop_programs([process])


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_an_endpoint_that_is_a_nodes_own_address_is_reached_from_everywhere_also_from_itself(
    cluster: Cluster, space: Space, host_server: str, protocol: str
) -> None:
    web = space.add_service("web", type="NodePort", selector={})
    cluster.api.patch("Service", f"{space.name}/web", {"spec": {"selector": None}})
    port = next(p["nodePort"] for p in web["spec"]["ports"] if p["protocol"] == protocol.upper())
    address = cluster.world.host(HOST).ipv4
    cluster.api.apply(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": "by-hand",
                "namespace": space.name,
                "labels": {"kubernetes.io/service-name": "web"},
            },
            "addressType": "IPv4",
            "ports": [{"name": p.lower(), "protocol": p, "port": POD_PORT} for p in ("TCP", "UDP")],
            "endpoints": [{"addresses": [address], "nodeName": HOST, "conditions": {"ready": True}}],
        }
    )

    # A datagram server that is bound to every address answers its own node's pods from the pods' gateway, proxy or not.
    clients = {*CLIENTS, *NAMES} - ({f"client-{HOST}"} if protocol == "udp" else set())
    cluster.await_served(target(web, protocol), {client: {host_server} for client in clients})
    for node in (HOST, "south-1"):
        at_node = Target(protocol, cluster.world.host(node).ipv4, port)
        cluster.await_served(at_node, {client: {host_server} for client in ("outside", *NAMES)})


def test_a_single_stack_ipv6_service(cluster: Cluster, space: Space) -> None:
    space.add_pods("web", ["north-1", "east-1"])
    web = space.add_service("web", ipFamilyPolicy="SingleStack", ipFamilies=["IPv6"])

    assert ":" in web["spec"]["clusterIP"]
    cluster.await_served(target(web), every_client("north-1", "east-1"))


def test_a_pod_that_reaches_itself_through_its_service(cluster: Cluster, space: Space) -> None:
    (pod,) = space.add_pods("web", ["north-1"])
    web = space.add_service("web")

    for ip in web["spec"]["clusterIPs"]:
        tally = cluster.await_served(target(web, ip=ip), {pod: {"north-1"}})[pod]
        host = cluster.world.host(pod)
        assert not set(tally.sources) & {host.ipv4, host.ipv6}


def test_a_node_finds_the_api_server_by_its_service(cluster: Cluster) -> None:
    ip = cluster.api.get("Service", "default/kubernetes")["spec"]["clusterIP"]
    curl = ["curl", "-sS", "--max-time", "30", "--cacert", str(cluster.plane.ca_certificate), f"https://{ip}/version"]

    def answer() -> str:
        """Nothing until its endpoint is known here: the API server names itself anew each time that it starts."""
        argv = command_in(cluster.world.host("east-1").netns, curl)
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout

    assert json.loads(wait_for(answer, "the API server answers"))["major"] == "1"
