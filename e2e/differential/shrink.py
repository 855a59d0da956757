"""The smallest world that still shows a difference. Pure but for the question that it is given."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from e2e.differential.model import ServiceSpec, SliceSpec, State, World


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
    if any(service.distribution for service in own):
        yield _only(name, lambda service: replace(service, distribution=None))
    if any(service.internal_policy != "Cluster" for service in own):
        yield _only(name, lambda service: replace(service, internal_policy="Cluster"))
    if any(service.external_policy != "Cluster" for service in own):
        yield _only(name, lambda service: replace(service, external_policy="Cluster"))
    if any(service.source_ranges for service in own):
        yield _only(name, lambda service: replace(service, source_ranges=()))
    if any(piece.label for service in own for piece in service.slices):
        yield _only(name, _without_slice_labels)
    if any(service.label for service in own):
        yield _only(name, lambda service: replace(service, label=""))
    if any(service.sticky for service in own):
        yield _only(name, lambda service: replace(service, sticky=False))
    if any(service.balancer_ips for service in own):
        yield _only(name, lambda service: replace(service, balancer_ips=()))


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
