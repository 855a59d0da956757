"""Pure. kube-proxy's part of IPVS and of ipset, in what `ipvsadm -Sn` and `ipset save` print.

Names as Kubernetes v1.20 to v1.36 gives them. The IPVS part was never run against a kernel: the one at hand lacks it.
"""

import re
from collections.abc import Iterable, Iterator

DEVICE = "kube-ipvs0"  # kube-proxy gives it every Service's addresses
_SETS = re.compile(
    r"KUBE-(?:6-)?(?:LOOP-BACK|CLUSTER-IP|EXTERNAL-IP|EXTERNAL-IP-LOCAL|LOAD-BALANCER|LOAD-BALANCER-LOCAL"
    r"|LOAD-BALANCER-FW|LOAD-BALANCER-SOURCE-IP|LOAD-BALANCER-SOURCE-CIDR|HEALTH-CHECK-NODE-PORT|IPVS-IPS"
    r"|NODE-PORT(?:-LOCAL)?-(?:TCP|UDP|SCTP(?:-HASH)?))"
)
_PORTS = re.compile(r"add KUBE-(?:6-)?NODE-PORT(?:-LOCAL)?-(TCP|UDP|SCTP)(?:-HASH)? (?:\S*:)?(\d+)")
_FLAGS = {"-t": "TCP", "-u": "UDP", "--sctp-service": "SCTP"}


def find_sets(names: Iterable[str]) -> tuple[str, ...]:
    """kube-proxy's among the names that `ipset list -name` prints."""
    return tuple(name for name in names if _SETS.fullmatch(name))


def find_node_ports(saved: str) -> frozenset[tuple[str, int]]:
    """(protocol, port) of the NodePorts that `ipset save` has in kube-proxy's sets."""
    found = (_PORTS.match(line) for line in saved.splitlines())
    return frozenset((match[1], int(match[2])) for match in found if match)


def find_servers(
    saved: str, addresses: frozenset[str], node_ports: frozenset[tuple[str, int]]
) -> Iterator[tuple[str, str]]:
    """(flag, address:port) of kube-proxy's virtual servers in `ipvsadm -Sn`'s output.

    They have an address of the device's, or a NodePort of the sets'; others are another program's.
    """
    for line in saved.splitlines():
        words = line.split()
        if len(words) < 3 or words[0] != "-A" or words[1] not in _FLAGS:  # noqa: PLR2004  # verb, flag, server
            continue
        address, _, port = words[2].rpartition(":")
        key = (_FLAGS[words[1]], int(port) if port.isdecimal() else 0)
        if address.strip("[]") in addresses or key in node_ports:
            yield words[1], words[2]
