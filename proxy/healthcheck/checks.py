"""Which Services want a health-check port, and how many ready endpoints this node has for each. Pure."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from endpointslice.snapshot import Snapshot, Touched
from endpointslice.types import Family, NodeName, Service, ServiceName, Slice, TrafficPolicy


class Check(NamedTuple):
    """What one port tells."""

    service: ServiceName
    port: int
    ready: int  # endpoints on this node that are ready


def wants_check(service: Service) -> bool:
    """Only a LoadBalancer Service with externalTrafficPolicy Local has a health-check port."""
    return (
        service.health_check_node_port > 0
        and service.type == "LoadBalancer"
        and service.external_traffic_policy is TrafficPolicy.LOCAL
    )


def count_ready(service: Service, slices: Iterable[Slice], node: NodeName) -> int:
    """Distinct addresses of the node's ready endpoints over all ports, of the family that has more.

    A dual-stack pod has one address of each family and counts once: the number is a weight for the balancer. An
    endpoint that drains isn't ready, so that the balancer leaves while this node still serves.
    """
    families = {Family.IPV6 if ":" in ip else Family.IPV4 for ip in service.cluster_ips}
    found: dict[Family, set[str]] = {family: set() for family in families}
    for piece in slices:
        if piece.family in found and piece.ports:
            found[piece.family].update(end.ip for end in piece.endpoints if end.ready and end.node == node)
    return max(map(len, found.values()), default=0)


class Checks:
    """The wanted checks of one node, kept in step with commits: a commit costs what it touched."""

    def __init__(self, node: NodeName) -> None:
        self._node = node
        self._of: dict[ServiceName, Check] = {}

    def update(self, snapshot: Snapshot, touched: Touched | None) -> bool:
        """Take in a commit, and whether any check differs; `touched` None: look at every Service."""
        differs = False
        names = touched.services if touched is not None else {*snapshot.services, *self._of}
        for name in names:
            service = snapshot.services.get(name)
            if service is None or not wants_check(service):
                differs |= self._of.pop(name, None) is not None
                continue
            ready = count_ready(service, snapshot.slices.get(name, {}).values(), self._node)
            check = Check(name, service.health_check_node_port, ready)
            differs |= self._of.get(name) != check
            self._of[name] = check
        return differs

    def by_port(self) -> Mapping[int, Check]:
        """Each wanted port's check. The API gives a port to one Service; of two in manifests the first by name."""
        return {check.port: check for _name, check in sorted(self._of.items(), reverse=True)}
