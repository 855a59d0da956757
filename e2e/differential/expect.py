"""Which endpoints closeby must choose where kube-proxy may choose others. Pure.

For these few probes only, and written anew from Kubernetes' texts and the README rather than taken from closeby, which
is what is judged. For all others kube-proxy is asked.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from e2e.differential.model import EndpointSpec, PortSpec, ServiceSpec, SliceSpec, State
from e2e.differential.places import HEADLESS, LOCAL_PODS, NODE, OTHER_PROXY, REMOTE_POD

_INSIDE = {*LOCAL_PODS, NODE, REMOTE_POD}  # all pods are in the cluster CIDR, by which both proxies tell their own
_ZONE_PREFERENCES = {"PreferClose", "PreferSameZone"}


class Own(StrEnum):
    """The rules by which closeby chooses on its own; by their names in `wanted.py`."""

    DAEMON_SET = "DaemonSet rule"
    NO_HINTS = "preference without hints"
    CLAIM = "two Services, one address"


class Listed(NamedTuple):
    """An endpoint behind a Service port."""

    spec: EndpointSpec
    port: int

    @property
    def words(self) -> str:
        """As it answers, less the source that it saw."""
        return f"{self.spec.ip} {self.port}"


class Way(NamedTuple):
    """Whose traffic it is and where it goes."""

    client: str
    protocol: str
    ip: str
    port: int


def find_port(service: ServiceSpec, way: Way) -> PortSpec | None:
    """The Service port behind the address and number; None if there is none."""
    ports = (port for port in service.ports if port.protocol == way.protocol)
    return next((port for port in ports if way.port in {port.port, port.node_port}), None)


def list_endpoints(service: ServiceSpec, way: Way) -> list[Listed]:
    """All behind the frontend in any condition; of two with one address and port the one that doesn't terminate."""
    port = find_port(service, way)
    if port is None or service.label == OTHER_PROXY:
        return []
    found: dict[str, Listed] = {}
    for piece in service.slices:
        if piece.label == HEADLESS or piece.is_ipv6 is not (":" in way.ip):
            continue
        for one in _of_slice(piece, port):
            if one.words not in found or not one.spec.terminating:
                found[one.words] = one
    return list(found.values())


def choose_as_peer(service: ServiceSpec, way: Way, zone: str | None) -> list[Listed]:
    """kube-proxy's list for that way."""
    listed = list_endpoints(service, way)
    if not may_leave_node(service, way):
        listed = [one for one in listed if one.spec.node == NODE]
    ready = [one for one in listed if is_ready(one.spec)]
    if not ready:
        return [one for one in listed if one.spec.terminating and one.spec.serving is not False]
    if not may_leave_node(service, way):
        return ready
    return _by_node_hints(ready) or _by_zone_hints(ready, zone) or ready


def choose_as_closeby(service: ServiceSpec, way: Way, zone: str | None) -> tuple[list[Listed], Own | None]:
    """The list that closeby must have, and the rule of its own that made it so."""
    peers = choose_as_peer(service, way, zone)
    listed = list_endpoints(service, way)
    ready = [one for one in listed if is_ready(one.spec)]
    if not ready or not may_leave_node(service, way) or _by_node_hints(ready):
        return peers, None
    local = [one for one in ready if one.spec.node == NODE]
    if local and keeps_daemon_sets_traffic(service):
        return local, Own.DAEMON_SET
    hinted = any(one.spec.for_zones or one.spec.for_nodes for one in listed)
    if service.distribution is None or hinted:
        return peers, None
    return _by_origin(ready, service.distribution, zone), Own.NO_HINTS


def may_leave_node(service: ServiceSpec, way: Way) -> bool:
    """Whether no policy keeps that traffic on the node; externalTrafficPolicy keeps nobody's from inside."""
    if way.ip in service.cluster_ips:
        return service.internal_policy == "Cluster"
    return service.external_policy == "Cluster" or way.client in _INSIDE


def keeps_daemon_sets_traffic(service: ServiceSpec) -> bool:
    """Whether the Service is one DaemonSet's that covers its nodes, which gives it closeby's same-node rule."""
    backing = service.daemon_set
    if backing is None or service.distribution not in _ZONE_PREFERENCES:
        return False
    endpoints = [one for piece in service.slices if piece.label != HEADLESS for one in piece.endpoints]
    if not backing.owns or not all(one.pod for one in endpoints):
        return False
    nodes = {one.node for one in endpoints if is_ready(one) and one.node}
    return NODE in nodes and len(nodes) >= backing.desired - 1  # one node may always be missing


def list_claimants(state: State, way: Way) -> list[ServiceSpec]:
    """Services that have this address and port, the one that closeby gives it first (D9 of DESIGN.md).

    They are made in their order, so the first is the oldest.
    """
    served = [
        service for service in state.services if service.label != OTHER_PROXY and (":" in way.ip) in _families(service)
    ]
    owners = [service for service in served if way.ip in service.cluster_ips and _has_port(service, way)]
    others = [service for service in served if way.ip in list_vips(service) and _has_port(service, way)]
    return [*owners, *(service for service in others if service not in owners)]


def find_server(state: State, way: Way, named: str) -> ServiceSpec | None:
    """The Service that closeby serves there: the first claimant, else the one of that name, as for a NodePort.

    A Service of another proxy has its addresses still, which another Service may claim, and get.
    """
    claimants = list_claimants(state, way)
    return claimants[0] if claimants else next((one for one in state.services if one.name == named), None)


def list_vips(service: ServiceSpec) -> tuple[str, ...]:
    """Its addresses beside the ClusterIPs."""
    return (*service.external_ips, *(one.ip for one in service.balancer_ips if one.mode == "VIP"))


def is_ready(endpoint: EndpointSpec) -> bool:
    """Not said means yes."""
    return endpoint.ready is not False


def reached(fates: Iterable[str]) -> frozenset[str]:
    """The endpoints that answered, as "ADDRESS PORT"."""
    return frozenset(" ".join(fate.split(" ")[:2]) for fate in fates if " " in fate)


def _families(service: ServiceSpec) -> set[bool]:
    return {":" in ip for ip in service.cluster_ips}


def _has_port(service: ServiceSpec, way: Way) -> bool:
    return any((port.protocol, port.port) == (way.protocol, way.port) for port in service.ports)


def _of_slice(piece: SliceSpec, port: PortSpec) -> list[Listed]:
    numbers = [
        one.port
        for one in piece.ports
        if (one.name, one.protocol) == (port.name, port.protocol) and one.port is not None
    ]
    return [Listed(one, number) for number in numbers for one in piece.endpoints]


def _by_node_hints(ready: list[Listed]) -> list[Listed]:
    if not all(one.spec.for_nodes for one in ready):
        return []
    return [one for one in ready if NODE in one.spec.for_nodes]


def _by_zone_hints(ready: list[Listed], zone: str | None) -> list[Listed]:
    if not all(one.spec.for_zones for one in ready):
        return []
    return [one for one in ready if zone in one.spec.for_zones]


def _by_origin(ready: list[Listed], distribution: str, zone: str | None) -> list[Listed]:
    """Where the endpoints say that they are, in place of hints."""
    here = [one for one in ready if one.spec.node == NODE]
    if distribution == "PreferSameNode" and here and all(one.spec.node for one in ready):
        return here
    near = [one for one in ready if one.spec.zone == zone]
    return near if near and all(one.spec.zone for one in ready) else ready
