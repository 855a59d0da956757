"""What the decisions read from the configuration: the same values for the daemon, `plan` and `explain`."""

from enum import StrEnum

import msgspec

from endpointslice.daemonsets import Mode
from endpointslice.types import CIDR, IP, NodeName

PRIMARY = "primary"  # --nodeport-addresses: only the first address of each family in the Node object


class Detect(StrEnum):
    """What tells pods from others, by kube-proxy's names (detectLocalMode)."""

    CLUSTER_CIDR = "ClusterCIDR"
    NODE_CIDR = "NodeCIDR"  # the podCIDRs of this Node
    BRIDGE_INTERFACE = "BridgeInterface"
    INTERFACE_NAME_PREFIX = "InterfaceNamePrefix"


class Settings(msgspec.Struct, frozen=True):
    """One node's settings; equal settings and an equal Snapshot give equal elements."""

    node: NodeName
    cluster_cidrs: tuple[CIDR, ...] = ()  # sources that are pods, for Detect.CLUSTER_CIDR; empty: no detector
    node_port_addresses: tuple[str, ...] = (PRIMARY,)  # `primary` or CIDRs
    same_node: Mode = Mode.AUTO
    masquerade_all: bool = False
    detect: Detect = Detect.CLUSTER_CIDR
    interface: str = ""  # its name for BRIDGE_INTERFACE, the beginning of its name for INTERFACE_NAME_PREFIX
    own_addresses: tuple[IP, ...] = ()  # the node's first of their family, whatever its Node says (bindAddress)
    external_ips: bool = True  # False: nobody's externalIPs are served (the gate AllowServiceExternalIPs)
