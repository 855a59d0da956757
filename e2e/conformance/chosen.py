"""Which of Kubernetes' specs are run, and why some can't be. No I/O."""

import re
from collections.abc import Iterable
from typing import NamedTuple

_NETWORK = r"\[sig-network\] "
_SUBJECTS = (
    *("Services", "Service endpoints latency", "Service CIDRs", "EndpointSlice", "Endpoints", "Traffic Distribution"),
    *("Topology Hints", "Networking", "DNS", "Conntrack", "KubeProxy", "HostPort", "Connectivity Pod Lifecycle"),
    *("CVE-2021-29923", "NoSNAT", "Proxy version", "API Server", "ServiceCIDR and IPAddress API"),
)


class Part(NamedTuple):
    """A run of the suite on one kind of cluster: regular expressions on a spec's whole name, as ginkgo takes them."""

    name: str
    workers: int
    focus: str
    skip: str  # "": none


NODES = Part(
    "nodes",
    workers=3,  # a spec of health checks wants three
    focus=f"{_NETWORK}({'|'.join(_SUBJECTS)})",
    skip=r"\[Slow\]|\[Serial\]|\[Disruptive\]|\[Feature:|Traffic Distribution|Topology Hints",
)
ZONES = Part(
    "zones",
    workers=6,
    focus=(
        rf"{_NETWORK}(Traffic Distribution|Topology Hints|KubeProxy|HostPort"
        rf"|({'|'.join(_SUBJECTS)}).*(\[Slow\]|\[Serial\])|.*\[Feature:IPv6DualStack\])"
    ),
    skip=r"\[Disruptive\]|\[Feature:[^I]|Forward PTR lookup",  # RE2 can't say "but IPv6DualStack"
)
WHOLE = (NODES, ZONES)  # together: all that can pass here

# What says most about a service proxy and takes least time: who should do what, as the specs' names have it.
_SHOULD = {
    "Connectivity Pod Lifecycle": (
        "be able to connect from a Pod to a terminating Pod",
        "be able to have zero downtime on a Blue Green deployment using Services and Readiness Gates",
    ),
    "Conntrack": (
        "be able to cleanup conntrack entries when UDP service target port changes for a NodePort service",
        "be able to preserve UDP traffic when initial unready endpoints get ready",
        "be able to preserve UDP traffic when server pod cycles for a ClusterIP service",
        "be able to preserve UDP traffic when server pod cycles for a ClusterIP service and client is hostNetwork",
        "be able to preserve UDP traffic when server pod cycles for a NodePort service",
    ),
    "DNS": (
        "provide DNS for services [Conformance]",
        "provide DNS for the cluster [Conformance]",
    ),
    "EndpointSlice": (
        "support a Service with multiple endpoint IPs specified in multiple EndpointSlices [Conformance]",
        "support a Service with multiple ports specified in multiple EndpointSlices [Conformance]",
    ),
    "EndpointSliceMirroring": ("mirror a custom Endpoint with multiple subsets and same IP address",),
    "KubeProxy": ("set TCP CLOSE_WAIT timeout [Privileged]",),
    "Networking Granular Checks: Services": (
        "be able to handle large requests: udp",
        "function for endpoint-Service: http",
        "function for node-Service: udp",
        "function for pod-Service: udp",
    ),
    "Networking": ("check kube-proxy urls",),
    "Service CIDRs": ("create Services and serve on different Service CIDRs",),
    "Services": (
        "allow pods to hairpin back to themselves through services",
        "be able to change the type from ExternalName to NodePort [Conformance]",
        "be able to change the type from NodePort to ExternalName [Conformance]",
        "be able to create a functioning NodePort service [Conformance]",
        "be able to switch session affinity for NodePort service [LinuxOnly] [Conformance]",
        "be able to switch session affinity for service with type clusterIP [LinuxOnly] [Conformance]",
        "be able to update service type to NodePort listening on same port number but different protocols",
        "be possible to connect to a service via ExternalIP when the external IP is not assigned to a node",
        "be rejected for evicted pods (no endpoints exist)",
        "be rejected when no endpoints exist",
        "be updated after adding or deleting ports",
        "connect to the named ports exposed by restartable init containers",
        "create endpoints for unready pods",
        "fail health check node port if there are only terminating endpoints",
        "fallback to local terminating endpoints when there are no ready endpoints with externalTrafficPolicy=Local",
        "fallback to terminating endpoints when there are no ready endpoints with internalTrafficPolicy=Cluster",
        "have session affinity work for NodePort service [LinuxOnly] [Conformance]",
        "have session affinity work for service with type clusterIP [LinuxOnly] [Conformance]",
        "implement service.kubernetes.io/headless",
        "implement service.kubernetes.io/service-proxy-name",
        "preserve source pod IP for traffic thru service cluster IP [LinuxOnly]",
        "release NodePorts on delete",
        "respect internalTrafficPolicy=Local Pod (hostNetwork: true) to Pod",
        "respect internalTrafficPolicy=Local Pod to Pod",
        "serve a basic endpoint from pods [Conformance]",
        "serve endpoints on same port and different protocol for internal traffic on Type LoadBalancer",
        "serve endpoints on same port and different protocols [Conformance]",
        "serve multiport endpoints from pods [Conformance]",
        "support externalTrafficPolicy=Local for type=NodePort",
        "support named targetPorts that resolve to different ports on different endpoints",
        "work after the service has been recreated",
    ),
}

CHOSEN_SPECS = tuple(f"[sig-network] {who} should {what}" for who, deeds in _SHOULD.items() for what in deeds)
CHOSEN = Part("chosen", workers=2, focus=f"({'|'.join(map(re.escape, CHOSEN_SPECS))})$", skip="")
PARTS = {part.name: part for part in (*WHOLE, CHOSEN)}

# Why specs are not run. The first pattern that is found in the name counts.
_IMPOSSIBLE = (
    (r"(?i)SCTP", "the kernel of the machine has no SCTP"),
    (r"Forward PTR lookup|Feature:Networking", "asks the Internet"),
    (r"\[Disruptive\]", "restarts components of a node by ssh"),
    (r"LoadBalancer", "asks for load-balancer addresses, which the clusters of these runs don't have"),
    (r"localhost nodeports", "of kube-proxy's iptables mode"),
    (r"Netpol", "asks a policy engine"),
    (r"Ingress", "of Ingress, no service proxy's work"),
    (r"PerformanceDNS", "10,000 Services and their look-ups: hours"),
)


def find_reason(name: str) -> str | None:
    """Why the spec can't run here; None if nothing is known against it."""
    return next((reason for pattern, reason in _IMPOSSIBLE if re.search(pattern, name)), None)


def list_left_out(names: Iterable[str]) -> dict[str, str]:
    """Spec -> why no part runs it, of the network's among the names; "" where no reason is known."""
    return {
        name: find_reason(name) or ""
        for name in names
        if re.search(_NETWORK, name) and not any(is_in(part, name) for part in WHOLE)
    }


def is_in(part: Part, name: str) -> bool:
    """Whether the part has the spec."""
    return bool(re.search(part.focus, name)) and not (part.skip and re.search(part.skip, name))
