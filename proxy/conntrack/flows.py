"""Which flows go where no Service sends them. Pure.

An established flow keeps the endpoint that its first packet was given, so a client that goes on sending never learns
that the endpoint left. What goes: flows to a UDP frontend whose answers come from anything but an endpoint that still
serves, which includes flows that were never translated (their answers come from the frontend itself), made before the
Service had an endpoint. What stays: whatever policies and hints say, since they are about new flows.

TCP notices by itself and SCTP is left alone, as kube-proxy does; but for TCP connections that were begun while no table
of ours stood, and that nobody has answered or translated. For two minutes the kernel would take every packet from the
same port for one of theirs, and translate it no more than those. What was answered once is never touched.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from endpointslice.addresses import pack_ip
from endpointslice.endpoints import merge_endpoints
from endpointslice.snapshot import Snapshot
from endpointslice.types import IP, Family, Protocol, Service, ServiceName, Slice
from proxy.kernel.change import Change
from proxy.kernel.ruleset import SetId, SetName
from proxy.planner.frontends import Claim, ClaimKey, Claims, service_claims

Socket = bytes  # an address and a port in network order: 6 or 18 bytes, so the families never meet
Sockets = frozenset[Socket]

_NO_SOCKETS: Sockets = frozenset()
_UDP_KEY = b"\x11\0\0\0"  # the l4proto field of our maps' keys
_VIP_ENDPOINTS = (SetName.ENDPOINTS, SetName.LOCAL_SOURCE_ENDPOINTS)
_VIPS = (SetName.SERVICE_PORTS, SetName.AFFINITY_PORTS)
_NODE_PORTS = (SetName.NODE_PORTS, SetName.AFFINITY_NODE_PORTS)
_TCP_KEY = b"\x06\0\0\0"
_NODE_PORT_ENDPOINTS = (SetName.NODE_PORT_ENDPOINTS, SetName.LOCAL_SOURCE_NODE_PORT_ENDPOINTS)
_FIELD_BYTES = 4  # protocol and port are padded to so many


class Judgement(NamedTuple):
    """What is known of flows, by their original destination; others are nobody's business of ours."""

    keep: Mapping[Socket, Sockets]  # a frontend -> where its answers may come from
    gone: Mapping[Socket, Sockets]  # a frontend that was -> where its answers mustn't come from any more
    fresh: Sockets = _NO_SOCKETS  # TCP frontends that nobody of ours translated until now
    coming: Sockets = _NO_SOCKETS  # where answers may come from by writes of which nothing else here knows


def is_stale(judgement: Judgement, destination: Socket, answers_from: Socket) -> bool:
    """Whether the flow to this destination, answered from there, is certainly ours and certainly wrong."""
    if answers_from in judgement.coming:
        return False
    keep = judgement.keep.get(destination)
    if keep is None:
        return answers_from in judgement.gone.get(destination, _NO_SOCKETS)
    return answers_from not in keep


def is_stuck(judgement: Judgement, destination: Socket, answers_from: Socket) -> bool:
    """Whether the TCP connection to this destination, which nobody has answered, passed by untranslated before us."""
    return destination == answers_from and destination in judgement.fresh


def pack_socket(ip: IP, port: int) -> Socket:
    """The address and port in network order."""
    return pack_ip(ip) + port.to_bytes(2)


class KeepSets:
    """The UDP frontends of all Services, and the endpoints whose flows are right, kept up to date by name."""

    def __init__(self) -> None:
        self._claims = Claims()
        self._keeps: dict[ServiceName, Mapping[ClaimKey, Sockets]] = {}

    def update(self, snapshot: Snapshot, names: Iterable[ServiceName]) -> frozenset[ServiceName]:
        """Those of the Services that have or had UDP ports, and others that won or lost a frontend to them."""
        touched: set[ServiceName] = set()
        for name in names:
            service = snapshot.services.get(name)
            claims = udp_claims(service) if service is not None else {}
            if not claims and name not in self._keeps:
                continue
            touched.add(name)
            touched |= self._claims.replace(name, claims)
            if service is None or not claims:
                self._keeps.pop(name, None)
            else:
                self._keeps[name] = keep_sets(service, snapshot.slices.get(name, {}).values(), claims)
        return frozenset(touched)

    def names(self) -> frozenset[ServiceName]:
        """Every Service with a UDP frontend."""
        return frozenset(self._keeps)

    def judge(
        self, names: Iterable[ServiceName], node_addresses: Iterable[IP], gone: Mapping[ClaimKey, Sockets]
    ) -> Judgement:
        """What of the Services' frontends is known, and of those that are gone and that no Service has now."""
        addresses = tuple(node_addresses)
        keep: dict[Socket, Sockets] = {}
        vips: dict[Socket, Sockets] = {}
        for name in names:
            for key, sockets in self._keeps.get(name, {}).items():
                if self._claims.winner(key).service == name:
                    (keep if key.ip is None else vips).update(dict.fromkeys(_destinations(key, addresses), sockets))
        keep |= vips  # where a VIP is a node's address too, the table asks for VIPs first
        left: dict[Socket, Sockets] = {}
        for key, sockets in gone.items():
            if not self._claims.has(key):
                left.update(dict.fromkeys(_destinations(key, addresses), sockets))
        return Judgement(keep, left)


def _destinations(key: ClaimKey, node_addresses: Iterable[IP]) -> list[Socket]:
    """What a client of the frontend sends to; of a NodePort only this node's own addresses."""
    if key.ip is not None:
        return [pack_socket(key.ip, key.port)]
    is_ipv6 = key.family is Family.IPV6
    return [pack_socket(ip, key.port) for ip in node_addresses if (":" in ip) is is_ipv6]


def udp_claims(service: Service) -> Mapping[ClaimKey, Claim]:
    """What the Service's UDP ports claim."""
    ports = tuple(port for port in service.ports if port.protocol is Protocol.UDP)
    return service_claims(msgspec.structs.replace(service, ports=ports)) if ports else {}


def keep_sets(
    service: Service, slices: Iterable[Slice], claims: Mapping[ClaimKey, Claim]
) -> Mapping[ClaimKey, Sockets]:
    """By claimed frontend, every endpoint that serves, wherever it is and whatever policies say.

    Ready counts as well: with publishNotReadyAddresses new flows go to endpoints that don't serve.
    """
    pieces = tuple(slices)
    found: dict[tuple[str, Family], Sockets] = {}
    for family in Family:
        for port in service.ports:
            if port.protocol is Protocol.UDP:
                endpoints = merge_endpoints(pieces, port, family)
                serving = (endpoint for endpoint in endpoints if endpoint.serving or endpoint.ready)
                found[port.name, family] = frozenset([pack_socket(one.ip, one.port) for one in serving])
    return {key: found[claim.port, key.family] for key, claim in claims.items()}


def deleted_targets(change: Change) -> dict[ClaimKey, Sockets]:
    """By UDP frontend, the endpoints that the change took out of our own table: proof that they were ours."""
    found: dict[ClaimKey, set[Socket]] = {}
    for set_id, part in change.sets.items():
        address_bytes = _address_bytes(set_id)
        if address_bytes is None:
            continue
        for key, target in part.delete.items():
            if key.startswith(_UDP_KEY, address_bytes):
                found.setdefault(_parse_key(set_id.family, key, address_bytes), set()).add(target[:-2])
    return {key: frozenset(sockets) for key, sockets in found.items()}


def added_targets(change: Change) -> Sockets:
    """The endpoints that the change brings into our own table for UDP frontends, or moves within it."""
    return frozenset(
        target[:-2]
        for set_id, part in change.sets.items()
        if (address_bytes := _address_bytes(set_id)) is not None
        for key, target in part.add.items()
        if key.startswith(_UDP_KEY, address_bytes)
    )


def _address_bytes(set_id: SetId) -> int | None:
    """With how many bytes of address the keys of a map of endpoints begin; None: it isn't one."""
    if set_id.name in _NODE_PORT_ENDPOINTS:
        return 0
    if set_id.name in _VIP_ENDPOINTS:
        return 4 if set_id.family is Family.IPV4 else 16
    return None


def added_frontends(change: Change, node_addresses: Iterable[IP]) -> Sockets:
    """The TCP frontends that the change put into our own table."""
    addresses = tuple(node_addresses)
    found: set[Socket] = set()
    for set_id, part in change.sets.items():
        is_ipv6 = set_id.family is Family.IPV6
        if set_id.name in _VIPS:
            size = 16 if is_ipv6 else 4
            ports = [(key[:size], key[size:]) for key in part.add]
        elif set_id.name in _NODE_PORTS:
            ports = [(pack_ip(ip), key) for ip in addresses if (":" in ip) is is_ipv6 for key in part.add]
        else:
            continue
        ends = slice(_FIELD_BYTES, _FIELD_BYTES + 2)
        found.update(address + key[ends] for address, key in ports if key.startswith(_TCP_KEY))
    return frozenset(found)


def _parse_key(family: Family, key: bytes, address_bytes: int) -> ClaimKey:
    """The frontend in an endpoint's key: daddr . l4proto . dport . index, or without the address."""
    ip = IP(str(ipaddress.ip_address(key[:address_bytes]))) if address_bytes else None
    start = address_bytes + _FIELD_BYTES
    return ClaimKey(family, ip, Protocol.UDP, int.from_bytes(key[start : start + 2]))
