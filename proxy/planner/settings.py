"""What the decisions read from the configuration: the same values for the daemon, `plan` and `explain`."""

import msgspec

from endpointslice.daemonsets import Mode
from endpointslice.types import CIDR, IP, NodeName

PRIMARY = "primary"  # --nodeport-addresses: only the first address of each family in the Node object


class Settings(msgspec.Struct, frozen=True):
    """One node's settings; equal settings and an equal Snapshot give equal elements."""

    node: NodeName
    cluster_cidrs: tuple[CIDR, ...] = ()  # sources that are pods (detectLocalMode ClusterCIDR); empty: no detector
    node_port_addresses: tuple[str, ...] = (PRIMARY,)  # `primary` or CIDRs
    same_node: Mode = Mode.AUTO
    masquerade_all: bool = False
    own_addresses: tuple[IP, ...] = ()  # the node's first of their family, whatever its Node says (bindAddress)
