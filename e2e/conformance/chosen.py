"""Which of Kubernetes' specs are run, and why some can't be. No I/O."""

import re
from typing import NamedTuple

_NETWORK = r"\[sig-network\] "
_SUBJECTS = (
    *("Services", "Service endpoints latency", "Service CIDRs", "EndpointSlice", "Endpoints", "Traffic Distribution"),
    *("Topology Hints", "Networking", "DNS", "Conntrack", "KubeProxy", "HostPort", "Connectivity Pod Lifecycle"),
    *("CVE-2021-29923", "NoSNAT"),
)


class Part(NamedTuple):
    """A run of the suite on one kind of cluster: regular expressions on a spec's whole name, as ginkgo takes them."""

    name: str
    workers: int
    focus: str
    skip: str


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
    skip=r"\[Disruptive\]|\[Feature:[^I]",  # RE2 can't say "but IPv6DualStack"
)
PARTS = {part.name: part for part in (NODES, ZONES)}

# Of specs that can pass with no service proxy on such a cluster. The first pattern that is found in the name counts.
_IMPOSSIBLE = (
    (r"SCTP", "the kernel of the machine has no SCTP"),
    (r"Forward PTR lookup|Feature:Networking", "asks the Internet"),
    (r"\[Disruptive\]", "restarts components of a node by ssh"),
    (r"LoadBalancer", "asks a cloud for a load balancer"),
    (r"localhost nodeports", "of kube-proxy's iptables mode"),
)


def find_reason(name: str) -> str | None:
    """Why the spec can't run here; None if nothing is known against it."""
    return next((reason for pattern, reason in _IMPOSSIBLE if re.search(pattern, name)), None)
