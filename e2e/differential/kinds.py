"""What a world is an example of, so that one can count whether chance makes them all. Pure."""

from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise

from e2e.differential.expect import Own, list_vips
from e2e.differential.model import ServiceSpec, State, World
from e2e.differential.targets import list_probes


class Kind(StrEnum):
    """What a world may hold, or what may happen in it."""

    PING = "a ping of a Service's address"
    SCTP = "an SCTP port beside another"
    DAEMON_SET = "a DaemonSet's endpoints where closeby's same-node rule decides"
    CLAIM = "two Services with one address and port"
    AFFINITY = "affinity over several addresses of a Service"
    SOURCE_RANGES = "source ranges of a load balancer"
    DUAL_STACK = "a Service of both families"
    TWICE = "an address that terminates and is there again"
    HIDDEN = "a label that hides a Service or slice comes or goes"
    ZONE = "another zone for the node"
    SLICE_ANEW = "a slice deleted and made anew"
    PORT_RENAMED = "a port with another name"
    PORT_MOVED = "a port with another number"
    TYPE = "another type of Service"
    NODE_PORT = "another NodePort"
    POLICY = "another traffic policy"
    ENDPOINTS = "other endpoints or conditions"
    AFFINITY_SWITCHED = "affinity switched on or off"
    GONE = "a Service deleted"


def list_kinds(world: World) -> frozenset[Kind]:
    """All that apply."""
    found = {kind for state in world.states for kind in _state_kinds(state)}
    for before, after in pairwise(world.states):
        found.update(_change_kinds(before, after))
    return frozenset(found)


def _state_kinds(state: State) -> Iterator[Kind]:
    probes = list_probes(state)
    if any(probe.target.protocol == "ICMP" for probe in probes):
        yield Kind.PING
    if any(probe.why is Own.DAEMON_SET for probe in probes):
        yield Kind.DAEMON_SET
    if any(probe.why is Own.CLAIM for probe in probes):
        yield Kind.CLAIM
    bound = [probe.binding for probe in probes if probe.binding]
    if len(bound) > len(set(bound)):
        yield Kind.AFFINITY
    for service in state.services:
        yield from _service_kinds(service)


def _service_kinds(service: ServiceSpec) -> Iterator[Kind]:
    protocols = {port.protocol for port in service.ports}
    if "SCTP" in protocols and len(protocols) > 1:
        yield Kind.SCTP
    if service.source_ranges and list_vips(service):
        yield Kind.SOURCE_RANGES
    if len(service.cluster_ips) > 1:
        yield Kind.DUAL_STACK
    ips = [one.ip for piece in service.slices for one in piece.endpoints]
    if len(ips) > len(set(ips)):
        yield Kind.TWICE


def _change_kinds(before: State, after: State) -> Iterator[Kind]:
    if before.zone != after.zone:
        yield Kind.ZONE
    there = {service.name: service for service in after.services}
    for service in before.services:
        if service.name not in there:
            yield Kind.GONE
        else:
            yield from _compare(service, there[service.name])


def _compare(before: ServiceSpec, after: ServiceSpec) -> Iterator[Kind]:
    was, now = _parts(before), _parts(after)
    yield from (kind for kind in was if was[kind] != now[kind])
    anew = {piece.name: piece.made for piece in after.slices}
    if any(anew.get(piece.name, piece.made) != piece.made for piece in before.slices):
        yield Kind.SLICE_ANEW


def _parts(service: ServiceSpec) -> dict[Kind, object]:
    """What is compared, for each kind of change."""
    return {
        Kind.HIDDEN: (service.label, {piece.name: piece.label for piece in service.slices}),
        Kind.PORT_RENAMED: [port.name for port in service.ports],
        Kind.PORT_MOVED: [port.port for port in service.ports],
        Kind.TYPE: service.type,
        Kind.NODE_PORT: [port.node_port for port in service.ports],
        Kind.POLICY: (service.internal_policy, service.external_policy),
        Kind.ENDPOINTS: [piece.endpoints for piece in service.slices],
        Kind.AFFINITY_SWITCHED: service.sticky,
    }
