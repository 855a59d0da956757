"""As an owner of a load balancer I say which sources may reach it (spec.loadBalancerSourceRanges)."""

import json

import pytest

from e2e.cluster.cluster import Cluster
from e2e.cluster.space import PORT, Space
from e2e.controlplane.waiting import wait_for
from e2e.world.clients import Outcome, Target

pytestmark = pytest.mark.e2e

HOSTING = ("north-1", "south-1")
VIPS = ("192.0.2.82", "fd00:192::82")
NODE = "north-2"  # what the outside client comes through
CLIENTS = ("outside", f"client-{NODE}", NODE)


def await_answered(cluster: Cluster, ip: str, port: int, clients: set[str]) -> None:
    """Returns once exactly these clients are answered there, and the others hear nothing."""

    def look() -> bool:
        found = set()
        for client in CLIENTS:
            outcomes = set(cluster.ask(client, Target("tcp", ip, port, tries=4, timeout_s=0.3)).outcomes)
            if outcomes == {Outcome.ANSWERED}:
                found.add(client)
            elif outcomes != {Outcome.TIMED_OUT}:
                return False
        return found == clients

    wait_for(look, f"{ip}:{port} answers {clients}")


def test_sources_outside_the_ranges_get_no_answer_at_the_load_balancers_addresses_and_only_there(
    cluster: Cluster, space: Space
) -> None:
    space.add_pods("web", HOSTING)
    web = space.add_service("web", type="LoadBalancer")
    ingress = [{"ip": ip, "ipMode": "VIP"} for ip in VIPS]
    cluster.api.patch_status("Service", f"{space.name}/web", {"loadBalancer": {"ingress": ingress}})
    cluster.world.route_outside(VIPS, NODE)
    for ip in VIPS:
        await_answered(cluster, ip, PORT, set(CLIENTS))

    def set_ranges(*ranges: str) -> None:
        cluster.api.patch("Service", f"{space.name}/web", {"spec": {"loadBalancerSourceRanges": list(ranges)}})

    outside, pods = cluster.world.outside, cluster.world.nodes[NODE].pod_cidrs
    set_ranges(f" {outside.ipv4}/32 ", "203.0.113.0/24", f"{outside.ipv6}/128")
    for ip in VIPS:
        await_answered(cluster, ip, PORT, {"outside"})
    node_port = next(p["nodePort"] for p in web["spec"]["ports"] if p["protocol"] == "TCP")
    await_answered(cluster, cluster.world.host(NODE).ipv4, node_port, set(CLIENTS))

    set_ranges(*pods)
    for ip in VIPS:
        await_answered(cluster, ip, PORT, {f"client-{NODE}"})
    refused = cluster.daemons[NODE].command("explain", f"{space.name}/web", "--from", outside.ipv4)
    assert "loadBalancerSourceRanges" in refused.output
    plan = json.loads(cluster.daemons[NODE].command("plan", "-o", "json").output)
    shown = {f["ip"]: f["source_ranges"] for s in plan["services"] for f in s["frontends"] if f["ip"] in VIPS}
    assert shown == {ip: [cidr] for ip, cidr in zip(VIPS, pods, strict=True)}

    set_ranges()
    for ip in VIPS:
        await_answered(cluster, ip, PORT, set(CLIENTS))
