"""What tells this node's pods from others (kube-proxy's detectLocalMode)."""

from typing import NamedTuple

from endpointslice.snapshot import Snapshot
from endpointslice.types import CIDR, Family, Node
from proxy.planner.settings import Detect, Settings


class Detector(NamedTuple):
    """How a packet is known to come from a pod; nothing in it: no packet is."""

    pods: tuple[CIDR, ...] = ()  # by its source
    interfaces: tuple[str, ...] = ()  # by where it came in; a name, or the beginning of one and "*"

    @property
    def families(self) -> frozenset[Family]:
        """Those in which pods can be told."""
        if self.interfaces:
            return frozenset(Family)
        return frozenset(Family.IPV6 if ":" in cidr else Family.IPV4 for cidr in self.pods)


def choose_detector(settings: Settings, node: Node | None) -> Detector:
    """The detector that the settings ask for. NodeCIDR is empty until the Node has its podCIDRs."""
    match settings.detect:
        case Detect.CLUSTER_CIDR:
            return Detector(settings.cluster_cidrs)
        case Detect.NODE_CIDR:
            return Detector(node.pod_cidrs if node is not None else ())
        case Detect.BRIDGE_INTERFACE:
            return Detector(interfaces=(settings.interface,))
        case Detect.INTERFACE_NAME_PREFIX:
            return Detector(interfaces=(f"{settings.interface}*",))


def waits_for_pod_cidrs(settings: Settings, snapshot: Snapshot) -> bool:
    """Whether nothing should be written yet: without podCIDRs every pod would count as outside for a while."""
    return settings.detect is Detect.NODE_CIDR and not choose_detector(settings, snapshot.nodes.get(settings.node)).pods
