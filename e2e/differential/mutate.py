"""Changes of a world from one state to the next. Pure: all chance comes from the generator that is given."""

from collections.abc import Callable
from random import Random
from typing import TypeVar

from msgspec.structs import replace

from e2e.differential.model import EndpointSpec, ServiceSpec, SliceSpec, State
from e2e.differential.places import HIDING_LABELS, NODE, SOURCE_RANGES, TARGET_PORTS, ZONES

T = TypeVar("T")


def mutate(rng: Random, state: State) -> State:
    """The state with one to three changes; never without any Service unless the last one was removed."""
    for _ in range(rng.randint(1, 3)):
        state = _mutate_once(rng, state)
    return state


def _mutate_once(rng: Random, state: State) -> State:
    if rng.random() < 0.1:
        return replace(state, zone=rng.choice((*ZONES, None)))
    if not state.services:
        return state
    index = rng.randrange(len(state.services))
    if rng.random() < 0.07:
        return replace(state, services=_without(state.services, index))
    changed = rng.choice(_CHANGES)(rng, state.services[index])
    return replace(state, services=_with(state.services, index, changed))


def _change_policy(rng: Random, service: ServiceSpec) -> ServiceSpec:
    if rng.random() < 0.5 and (service.type != "ClusterIP" or service.external_ips):
        return replace(service, external_policy={"Cluster": "Local", "Local": "Cluster"}[service.external_policy])
    return replace(service, internal_policy={"Cluster": "Local", "Local": "Cluster"}[service.internal_policy])


def _change_endpoint(rng: Random, service: ServiceSpec) -> ServiceSpec:
    """Its conditions or hints; an address that stands there twice is left alone."""

    def change(endpoint: EndpointSpec) -> EndpointSpec:
        match rng.randrange(4):
            case 0:
                return replace(endpoint, ready=True, serving=True, terminating=False)
            case 1:
                return replace(endpoint, ready=False, serving=True, terminating=True)
            case 2:
                return replace(endpoint, ready=False, serving=False, terminating=False)
            case _:
                return replace(endpoint, for_zones=(rng.choice(ZONES),), for_nodes=rng.choice(((), (NODE,))))

    def in_slice(piece: SliceSpec) -> SliceSpec:
        once = [index for index, one in enumerate(piece.endpoints) if _count(service, one.ip) == 1]
        if not once:
            return piece
        index = rng.choice(once)
        return replace(piece, endpoints=_with(piece.endpoints, index, change(piece.endpoints[index])))

    return _in_a_slice(rng, service, in_slice)


def _remove_endpoint(rng: Random, service: ServiceSpec) -> ServiceSpec:
    def in_slice(piece: SliceSpec) -> SliceSpec:
        if not piece.endpoints:
            return piece
        return replace(piece, endpoints=_without(piece.endpoints, rng.randrange(len(piece.endpoints))))

    return _in_a_slice(rng, service, in_slice)


def _change_target(rng: Random, service: ServiceSpec) -> ServiceSpec:
    """The number that a slice gives for its ports."""

    def in_slice(piece: SliceSpec) -> SliceSpec:
        return replace(piece, ports=tuple(replace(port, port=rng.choice(TARGET_PORTS)) for port in piece.ports))

    return _in_a_slice(rng, service, in_slice)


def _remove_slice(rng: Random, service: ServiceSpec) -> ServiceSpec:
    if not service.slices:
        return service
    return replace(service, slices=_without(service.slices, rng.randrange(len(service.slices))))


def _change_port(rng: Random, service: ServiceSpec) -> ServiceSpec:
    """Another number for one port of the Service, which no other has."""
    index = rng.randrange(len(service.ports))
    port = service.ports[index]
    return replace(service, ports=_with(service.ports, index, replace(port, port=port.port + 1000)))


def _remove_address(_rng: Random, service: ServiceSpec) -> ServiceSpec:
    if service.balancer_ips:
        return replace(service, balancer_ips=service.balancer_ips[1:])
    if service.type == "ClusterIP" and len(service.external_ips) == 1:
        return replace(service, external_ips=(), external_policy="Cluster")
    return replace(service, external_ips=service.external_ips[1:])


def _change_source_ranges(rng: Random, service: ServiceSpec) -> ServiceSpec:
    if service.type != "LoadBalancer":
        return service
    pair = rng.choice(SOURCE_RANGES)
    return replace(service, source_ranges=rng.choice((pair, pair[:1], pair[1:], ())))


def _change_affinity(_rng: Random, service: ServiceSpec) -> ServiceSpec:
    return replace(service, sticky=not service.sticky)


def _change_distribution(rng: Random, service: ServiceSpec) -> ServiceSpec:
    return replace(service, distribution=rng.choice((None, "PreferClose", "PreferSameNode")))


def _change_label(rng: Random, service: ServiceSpec) -> ServiceSpec:
    """A label that may hide the Service, or a slice, from service proxies comes or goes."""
    label = rng.choice(HIDING_LABELS)
    if rng.random() < 0.7:
        return replace(service, label="" if service.label else label)
    return _in_a_slice(rng, service, lambda piece: replace(piece, label="" if piece.label else label))


def _remake_slice(rng: Random, service: ServiceSpec) -> ServiceSpec:
    return _in_a_slice(rng, service, lambda piece: replace(piece, made=piece.made + 1))


def _rename_port(rng: Random, service: ServiceSpec) -> ServiceSpec:
    """A port of the Service; its slices follow mostly."""
    index = rng.randrange(len(service.ports))
    port = service.ports[index]
    renamed = replace(port, name=f"{port.name or 'port'}x"[:15])
    service = replace(service, ports=_with(service.ports, index, renamed))
    if rng.random() < 0.2:
        return service
    slices = tuple(
        replace(
            piece,
            ports=tuple(replace(one, name=renamed.name) if one.name == port.name else one for one in piece.ports),
        )
        for piece in service.slices
    )
    return replace(service, slices=slices)


def _switch_type(rng: Random, service: ServiceSpec) -> ServiceSpec:
    kinds = [one for one in ("ClusterIP", "NodePort", "LoadBalancer") if one != service.type]
    return make_of_type(service, rng.choice(kinds))


def make_of_type(service: ServiceSpec, kind: str) -> ServiceSpec:
    """The Service as one of that type; what this doesn't have goes."""
    service = replace(service, type=kind)
    if kind != "LoadBalancer":
        service = replace(service, balancer_ips=(), source_ranges=())
    if kind == "ClusterIP":
        service = replace(service, ports=tuple(replace(port, node_port=0) for port in service.ports))
        if not service.external_ips:
            service = replace(service, external_policy="Cluster")
    return service


def _move_node_port(rng: Random, service: ServiceSpec) -> ServiceSpec:
    """Eight up or down, where none of the world's is."""
    having = [index for index, port in enumerate(service.ports) if port.node_port]
    if not having:
        return service
    index = rng.choice(having)
    port = service.ports[index]
    return replace(service, ports=_with(service.ports, index, replace(port, node_port=port.node_port ^ 8)))


_CHANGES: tuple[Callable[[Random, ServiceSpec], ServiceSpec], ...] = (
    _change_policy,
    _change_policy,
    _change_endpoint,
    _change_endpoint,
    _change_endpoint,
    _remove_endpoint,
    _change_target,
    _remove_slice,
    _change_port,
    _remove_address,
    _change_distribution,
    _change_source_ranges,
    _change_affinity,
    _change_label,
    _change_label,
    _remake_slice,
    _remake_slice,
    _rename_port,
    _rename_port,
    _switch_type,
    _switch_type,
    _move_node_port,
    _move_node_port,
)


def _in_a_slice(rng: Random, service: ServiceSpec, change: Callable[[SliceSpec], SliceSpec]) -> ServiceSpec:
    if not service.slices:
        return service
    index = rng.randrange(len(service.slices))
    return replace(service, slices=_with(service.slices, index, change(service.slices[index])))


def _count(service: ServiceSpec, ip: str) -> int:
    return sum(endpoint.ip == ip for piece in service.slices for endpoint in piece.endpoints)


def _with(items: tuple[T, ...], index: int, item: T) -> tuple[T, ...]:
    return (*items[:index], item, *items[index + 1 :])


def _without(items: tuple[T, ...], index: int) -> tuple[T, ...]:
    return (*items[:index], *items[index + 1 :])
