"""The pods' network of a kind cluster: one bridgeless link a pod, and one static route a node. No I/O.

Pods keep their addresses from node to node, and nobody masquerades: what a Service's backend sees is the proxy's work
alone. kind's own network plugin comes as an image and masquerades.
"""

import ipaddress
import json
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from e2e.kind.config import ZONE_LABEL

_CONFLIST = "/etc/cni/net.d/10-ptp.conflist"
_UNIT = "pod-routes.service"


class Node(NamedTuple):
    """A node, as its object in the API tells."""

    name: str
    addresses: tuple[str, ...]  # internal ones, one a family
    pod_cidrs: tuple[str, ...]  # one a family; none until the controller manager has allotted them
    zone: str = ""
    ready: bool = False


def decode_nodes(listed: str) -> list[Node]:
    """The nodes of `kubectl get nodes -o json`, sorted by name."""
    return sorted(
        Node(
            item["metadata"]["name"],
            tuple(a["address"] for a in item["status"].get("addresses", ()) if a["type"] == "InternalIP"),
            tuple(item["spec"].get("podCIDRs", ())),
            item["metadata"].get("labels", {}).get(ZONE_LABEL, ""),
            any(c["type"] == "Ready" and c["status"] == "True" for c in item["status"].get("conditions", ())),
        )
        for item in json.loads(listed)["items"]
    )


def render_conflist(node: Node) -> str:
    """A CNI network list (CNI spec 0.4.0, the newest that Debian 12's plugins know)."""
    ranges = [[{"subnet": cidr}] for cidr in node.pod_cidrs]
    defaults = [{"dst": "::/0" if _version(cidr) == 6 else "0.0.0.0/0"} for cidr in node.pod_cidrs]
    ptp = {"type": "ptp", "ipMasq": False, "ipam": {"type": "host-local", "ranges": ranges, "routes": defaults}}
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "0.4.0", "name": "ptp", "plugins": [ptp, portmap]}, indent=1)


def routes_to(nodes: Iterable[Node]) -> list[str]:
    """`ip route` arguments that lead to the nodes' pods: "10.244.1.0/24 via 172.18.0.3"."""
    return [
        f"{cidr} via {address}"
        for node in nodes
        for cidr in node.pod_cidrs
        for address in node.addresses
        if _version(cidr) == _version(address)
    ]


def render_setup(node: Node, others: Iterable[Node]) -> str:
    """A script for the node: its plugins' configuration, and its routes to the pods of the others."""
    return f"""\
set -e
mkdir -p {PurePosixPath(_CONFLIST).parent}
cat > /etc/systemd/system/{_UNIT} <<'END'
{render_unit(routes_to(others))}END
cat > {_CONFLIST} <<'END'
{render_conflist(node)}
END
systemctl daemon-reload
systemctl enable --quiet --now {_UNIT}
"""


def render_unit(routes: Iterable[str]) -> str:
    """A systemd unit that sets the routes now and after each restart of the node, which loses them."""
    lines = "".join(f"ExecStart=ip route replace {route}\n" for route in routes)
    return (
        "[Unit]\nDescription=Routes to the pods of other nodes\nBefore=kubelet.service\n\n"
        f"[Service]\nType=oneshot\nRemainAfterExit=yes\n{lines}\n[Install]\nWantedBy=multi-user.target\n"
    )


def _version(address: str) -> int:
    return ipaddress.ip_address(address.partition("/")[0]).version
