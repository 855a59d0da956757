"""The smallest world that still shows a difference. Pure but for the question that it is given."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from e2e.differential.model import ServiceSpec, SliceSpec, State, World
from e2e.differential.mutate import make_of_type


def shrink(world: World, differs: Callable[[World], bool], tries: int) -> World:
    """`differs` is asked at most so many times; the answer for `world` itself is taken to be yes."""
    left = tries
    smaller = True
    while smaller:
        smaller = False
        for candidate in list_smaller(world):
            if left == 0:
                return world
            left -= 1
            if differs(candidate):
                world, smaller = candidate, True
                break
    return world


def list_smaller(world: World) -> Iterator[World]:
    """Worlds with one thing less, the greatest things first."""
    if len(world.states) > 1:
        yield replace(world, states=world.states[-1:])
        for index in range(len(world.states) - 1):
            yield replace(world, states=(*world.states[:index], *world.states[index + 1 :]))
    for name in _service_names(world):
        yield _edit(world, lambda service, name=name: None if service.name == name else service)  # type: ignore[misc]
    for name in _service_names(world):
        for change in _changes(world, name):
            yield _edit(world, change)


def _service_names(world: World) -> list[str]:
    return sorted({service.name for state in world.states for service in state.services})


def _edit(world: World, change: Callable[[ServiceSpec], ServiceSpec | None]) -> World:
    """Every state with its Services changed; None drops one."""
    states = []
    for state in world.states:
        changed = [change(service) for service in state.services]
        states.append(State(state.zone, tuple(service for service in changed if service is not None)))
    return replace(world, states=tuple(states))


def _changes(world: World, name: str) -> Iterator[Callable[[ServiceSpec], ServiceSpec | None]]:
    """Leave out a slice, an endpoint, a Service's address or a setting, in all states."""
    own = [service for state in world.states for service in state.services if service.name == name]
    for piece in sorted({piece.name for service in own for piece in service.slices}):
        yield _only(name, lambda service, piece=piece: _without_slice(service, piece))  # type: ignore[misc]
    for ip in sorted({one.ip for service in own for piece in service.slices for one in piece.endpoints}):
        yield _only(name, lambda service, ip=ip: _without_ip(service, ip))  # type: ignore[misc]
    for differs, change in _SIMPLER:
        if any(differs(service) for service in own):
            yield _only(name, change)
    for ip in sorted({ip for service in own for ip in service.cluster_ips if len(service.cluster_ips) > 1}):
        yield _only(name, lambda service, ip=ip: _without_family(service, ip))  # type: ignore[misc]
    for port in sorted({port.name for service in own for port in service.ports if len(service.ports) > 1}):
        yield _only(name, lambda service, port=port: _without_port(service, port))  # type: ignore[misc]


def _only(name: str, change: Callable[[ServiceSpec], ServiceSpec]) -> Callable[[ServiceSpec], ServiceSpec]:
    return lambda service: change(service) if service.name == name else service


def _without_slice_labels(service: ServiceSpec) -> ServiceSpec:
    return replace(service, slices=tuple(replace(piece, label="") for piece in service.slices))


def _without_slice(service: ServiceSpec, name: str) -> ServiceSpec:
    return replace(service, slices=tuple(piece for piece in service.slices if piece.name != name))


def _without_ip(service: ServiceSpec, ip: str) -> ServiceSpec:
    return replace(service, slices=tuple(_piece_without_ip(piece, ip) for piece in service.slices))


def _piece_without_ip(piece: SliceSpec, ip: str) -> SliceSpec:
    return replace(piece, endpoints=tuple(one for one in piece.endpoints if one.ip != ip))


def _without_family(service: ServiceSpec, ip: str) -> ServiceSpec:
    """Without that ClusterIP and the slices of its family, if it has another."""
    kept = tuple(one for one in service.cluster_ips if one != ip)
    if not kept:
        return service
    slices = tuple(piece for piece in service.slices if piece.is_ipv6 is not (":" in ip))
    return replace(service, cluster_ips=kept, slices=slices)


def _without_port(service: ServiceSpec, name: str) -> ServiceSpec:
    ports = tuple(port for port in service.ports if port.name != name)
    return replace(service, ports=ports) if ports else service


# What makes a Service less simple, and the Service without it.
_SIMPLER: tuple[tuple[Callable[[ServiceSpec], bool], Callable[[ServiceSpec], ServiceSpec]], ...] = (
    (lambda service: service.daemon_set is not None, lambda service: replace(service, daemon_set=None)),
    (lambda service: service.distribution is not None, lambda service: replace(service, distribution=None)),
    (lambda service: service.internal_policy != "Cluster", lambda service: replace(service, internal_policy="Cluster")),
    (lambda service: service.external_policy != "Cluster", lambda service: replace(service, external_policy="Cluster")),
    (lambda service: bool(service.source_ranges), lambda service: replace(service, source_ranges=())),
    (lambda service: any(piece.label for piece in service.slices), _without_slice_labels),
    (lambda service: bool(service.label), lambda service: replace(service, label="")),
    (lambda service: service.sticky, lambda service: replace(service, sticky=False)),
    (lambda service: bool(service.balancer_ips), lambda service: replace(service, balancer_ips=())),
    (lambda service: service.type != "ClusterIP", lambda service: make_of_type(service, "ClusterIP")),
)
