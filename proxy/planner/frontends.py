"""The addresses and ports that clients use: what a Service port answers on, and who wins where two claim the same."""

from collections.abc import KeysView, Mapping
from enum import StrEnum
from typing import NamedTuple

from endpointslice.addresses import family_of
from endpointslice.types import IP, Family, Protocol, Service, ServiceName, ServicePort


class FrontendKind(StrEnum):
    """What kind of address a frontend is."""

    CLUSTER_IP = "ClusterIP"
    EXTERNAL_IP = "ExternalIP"
    LOAD_BALANCER_IP = "LoadBalancerIP"
    NODE_PORT = "NodePort"


class Frontend(NamedTuple):
    """One thing that a client can connect to."""

    kind: FrontendKind
    family: Family
    ip: IP | None  # None: a NodePort, on each of the node's own addresses
    protocol: Protocol
    port: int


class ClaimKey(NamedTuple):
    """What only one Service port can have: the kernel's maps hold one value a key."""

    family: Family
    ip: IP | None
    protocol: Protocol
    port: int


class Claim(NamedTuple):
    """A Service port's claim; the smallest wins: a ClusterIP, then the older Service, then the first by name."""

    rank: int  # 0: its own ClusterIP, which nobody's externalIPs may take; 1: anything else
    created: str  # RFC 3339 in UTC sorts as text; "~" sorts an unknown age last
    service: ServiceName
    port: str


def service_families(service: Service) -> tuple[Family, ...]:
    """The families that the Service has a ClusterIP of; its other addresses of other families don't count."""
    return tuple([family_of(ip) for ip in service.cluster_ips])


def port_frontends(service: Service, port: ServicePort, family: Family) -> tuple[Frontend, ...]:
    """Every frontend of one Service port in one family, the ClusterIP first; an address named twice counts once."""
    seen: set[IP] = set()
    frontends: list[Frontend] = []
    is_ipv6 = family is Family.IPV6
    for kind, ips in (
        (FrontendKind.CLUSTER_IP, service.cluster_ips),
        (FrontendKind.LOAD_BALANCER_IP, service.load_balancer_ips),
        (FrontendKind.EXTERNAL_IP, service.external_ips),
    ):
        for ip in ips:
            if (":" in ip) is is_ipv6 and ip not in seen:
                seen.add(ip)
                frontends.append(Frontend(kind, family, ip, port.protocol, port.port))
    if port.node_port:
        frontends.append(Frontend(FrontendKind.NODE_PORT, family, None, port.protocol, port.node_port))
    return tuple(frontends)


def claim_key(frontend: Frontend) -> ClaimKey:
    """The key that the frontend takes."""
    return ClaimKey(frontend.family, frontend.ip, frontend.protocol, frontend.port)


def service_claims(service: Service) -> dict[ClaimKey, Claim]:
    """Every key that the Service claims; between two ports of one Service the first by name has it."""
    claims: dict[ClaimKey, Claim] = {}
    created = service.created or "~"
    for family in service_families(service):
        for port in service.ports:
            for kind, _family, ip, protocol, number in port_frontends(service, port, family):
                key = ClaimKey(family, ip, protocol, number)
                claim = Claim(0 if kind is FrontendKind.CLUSTER_IP else 1, created, service.name, port.name)
                rival = claims.get(key)
                claims[key] = claim if rival is None else min(claim, rival)
    return claims


class Claims:
    """Who claims which key; the winner depends on the claims only, never on their order."""

    def __init__(self) -> None:
        self._winners: dict[ClaimKey, Claim] = {}
        self._contested: dict[ClaimKey, frozenset[Claim]] = {}  # every claim, where there are several
        self._by_service: dict[ServiceName, tuple[ClaimKey, ...]] = {}

    @property
    def services(self) -> KeysView[ServiceName]:
        """Those that claim anything."""
        return self._by_service.keys()

    def replace(self, service: ServiceName, claims: Mapping[ClaimKey, Claim]) -> frozenset[ServiceName]:
        """The other Services whose frontends may have changed hands."""
        others: set[ServiceName] = set()
        for key in self._by_service.pop(service, ()):
            rivals = {claim for claim in self._contested.get(key, ()) if claim.service != service}
            others.update(claim.service for claim in rivals)
            self._settle(key, rivals)
        for key, claim in claims.items():
            if key in self._winners:
                rivals = {*self._contested.get(key, (self._winners[key],))}
                others.update(rival.service for rival in rivals)
                self._settle(key, rivals | {claim})
            else:
                self._winners[key] = claim
        if claims:
            self._by_service[service] = tuple(claims)
        return frozenset(others)

    def _settle(self, key: ClaimKey, claims: set[Claim]) -> None:
        """These are all that claim the key."""
        if claims:
            self._winners[key] = min(claims)
        else:
            del self._winners[key]
        if len(claims) > 1:
            self._contested[key] = frozenset(claims)
        else:
            self._contested.pop(key, None)

    def has(self, key: ClaimKey) -> bool:
        """Whether anybody claims the key."""
        return key in self._winners

    def winner(self, key: ClaimKey) -> Claim:
        """The claim that has the key; the key must be claimed."""
        return self._winners[key]
