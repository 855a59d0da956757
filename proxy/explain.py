"""The answer to "where does it go, and why", from the same plan that is programmed."""

import ipaddress
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from endpointslice.daemonsets import SameNodeWhy
from endpointslice.topology import LeftOut, Why
from endpointslice.types import IP, Node, Service
from proxy.planner.frontends import Frontend, FrontendKind
from proxy.planner.plan import Answer, FrontendPlan, Source
from proxy.planner.settings import Detect, Settings
from proxy.planner.source_ranges import allows

WHY: Mapping[Why, str] = {
    Why.NODE_HINTS: "every ready endpoint names the nodes it is for, and some name this one",
    Why.DAEMON_SET_ON_NODE: "one DaemonSet is behind the Service and covers its nodes, and its pod here is ready",
    Why.ZONE_HINTS: "every ready endpoint names the zones it is for, and some name this node's",
    Why.ENDPOINT_NODES: "PreferSameNode without hints: the ready endpoints on this node",
    Why.ENDPOINT_ZONES: "the Service prefers close endpoints and none has hints: the ready ones in this node's zone",
    Why.ALL_READY: "every ready endpoint, since nothing closer was asked for or is there",
    Why.DRAINING: "no endpoint is ready: those that terminate but still serve",
    Why.LOCAL_READY: "the policy is Local: the ready endpoints on this node",
    Why.LOCAL_DRAINING: "the policy is Local and none here is ready: those here that terminate but still serve",
    Why.NO_LOCAL_ENDPOINTS: "the policy is Local and no endpoint is on this node: dropped, as kube-proxy does",
    Why.NO_ENDPOINTS: "the Service has no usable endpoint anywhere: refused at once",
    Why.NO_FRONTEND: "the port has no address of this kind",
}

LEFT_OUT: Mapping[LeftOut, str] = {
    LeftOut.NOT_READY: "not ready",
    LeftOut.TERMINATING: "terminating, and no longer serving",
    LeftOut.DRAINING: "terminating: ready ones come first",
    LeftOut.OTHER_NODE: "on another node",
    LeftOut.OTHER_ZONE: "in another zone",
    LeftOut.HINTED_ELSEWHERE: "hinted for elsewhere",
    LeftOut.NO_FRONTEND: "the port has no address of this kind",
}

SAME_NODE: Mapping[SameNodeWhy, str] = {
    SameNodeWhy.COVERED: "on: the DaemonSet covers its nodes",
    SameNodeWhy.HELD: "on: the DaemonSet covers too few nodes, but not for long yet",
    SameNodeWhy.ALWAYS: "on: --same-node-for-daemon-sets=Always",
    SameNodeWhy.NEVER: "off: --same-node-for-daemon-sets=Never",
    SameNodeWhy.NO_PREFERENCE: "off: trafficDistribution is neither PreferClose nor PreferSameZone",
    SameNodeWhy.NO_SELECTOR: "off: the Service has no selector",
    SameNodeWhy.NO_DAEMON_SET: "off: no DaemonSet's pods match the Service's selector",
    SameNodeWhy.SEVERAL_DAEMON_SETS: "off: several DaemonSets' pods match the Service's selector",
    SameNodeWhy.OTHER_PODS: "off: an endpoint is not a pod of the DaemonSet, by its name",
    SameNodeWhy.TOO_FEW_NODES: "off: the DaemonSet has ready pods on too few of its nodes",
    SameNodeWhy.NO_LOCAL_ENDPOINT: "off: no endpoint on this node is ready",
    SameNodeWhy.OWNER_UNKNOWN: "off: who owns this node's pod isn't known (yet)",
    SameNodeWhy.OTHER_OWNER: "off: this node's pod belongs to something else",
}


class Who(StrEnum):
    """What a client's address says of it."""

    POD = "pod"
    HOST = "host"  # a process on this node, or a pod with hostNetwork
    OUTSIDE = "outside"


def classify_client(client: IP, node: Node | None, settings: Settings) -> tuple[Who, str]:
    """Who a client of this address is to this node, and why."""
    if node is not None and client in node.addresses:
        return Who.HOST, f"an address of node {node.name}"
    mode = settings.detect
    by_interface = mode in {Detect.BRIDGE_INTERFACE, Detect.INTERFACE_NAME_PREFIX}
    cidrs = settings.cluster_cidrs if mode is Detect.CLUSTER_CIDR else node.pod_cidrs if node is not None else ()
    kind = "the cluster CIDR" if mode is Detect.CLUSTER_CIDR else "this node's podCIDR"
    told = f"; packets are told by interface, {mode} {settings.interface}" if by_interface else ""
    for cidr in cidrs:
        if ipaddress.ip_address(client) in ipaddress.ip_network(cidr):
            return Who.POD, f"a pod: inside {kind} {cidr}{told}"
    if not cidrs:
        missing = "cluster CIDR" if mode is Detect.CLUSTER_CIDR else "podCIDR of this node"
        return Who.OUTSIDE, f"no {missing} is known, so pods count as outside{told}"
    return Who.OUTSIDE, f"outside {kind} {','.join(cidrs)}{told}"


def show_frontend(frontend: Frontend) -> str:
    """What a client connects to: `ClusterIP 10.96.0.10:80`."""
    host = f"[{frontend.ip}]" if frontend.ip and ":" in frontend.ip else frontend.ip or "node"
    return f"{frontend.kind.value} {host}:{frontend.port}"


def explain_sources(service: Service, plan: FrontendPlan, client: IP | None) -> str:
    """Who may reach a frontend by loadBalancerSourceRanges, for that client if one is given; "" where all may."""
    frontend = plan.frontend
    if frontend.kind is not FrontendKind.LOAD_BALANCER_IP or not service.source_ranges:
        return ""
    where = show_frontend(frontend)
    if not plan.sources:
        return f"{where} is open to all: loadBalancerSourceRanges has no range of {frontend.family.value}."
    ranges = f"loadBalancerSourceRanges {', '.join(plan.sources)}"
    if client is None:
        return f"{where} is open to {ranges} only."
    if allows(plan.sources, client):
        return f"{where} is open to {client}, by {ranges}."
    return f"{where} drops what {client} sends: it is in none of {ranges}."


def choose_answer(plan: FrontendPlan, who: Who) -> Answer:
    """The one answer that holds for such a client; the host's own traffic shares pods' answers, but not their source.

    A ClusterIP asks for pods only (the host is masqueraded with the rest), the short circuit for pods and host.
    """
    at_cluster_ip = plan.frontend.kind is FrontendKind.CLUSTER_IP
    ours = who is Who.POD or (who is Who.HOST and not at_cluster_ip)
    answer = plan.answers[-1 if ours else 0]
    if who is Who.HOST and not at_cluster_ip:
        return msgspec.structs.replace(answer, source=Source.MASQUERADED)
    return answer
