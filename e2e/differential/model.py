"""A random world: what the API holds, state after state. Plain values, so that a world can be shrunk and printed."""

import msgspec


class PortSpec(msgspec.Struct, frozen=True):
    """A port of a Service."""

    name: str
    protocol: str  # TCP or UDP
    port: int
    node_port: int = 0


class EndpointSpec(msgspec.Struct, frozen=True):
    """An endpoint in a slice; None is a field that isn't written."""

    ip: str
    node: str | None = None
    zone: str | None = None
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None
    for_zones: tuple[str, ...] = ()
    for_nodes: tuple[str, ...] = ()


class SlicePortSpec(msgspec.Struct, frozen=True):
    """A port of a slice; None is a field that isn't written."""

    name: str
    protocol: str
    port: int | None


class SliceSpec(msgspec.Struct, frozen=True):
    """An EndpointSlice of its Service."""

    name: str
    is_ipv6: bool
    ports: tuple[SlicePortSpec, ...]
    endpoints: tuple[EndpointSpec, ...]


class BalancerIP(msgspec.Struct, frozen=True):
    """An address in a Service's status."""

    ip: str
    mode: str  # VIP or Proxy


class ServiceSpec(msgspec.Struct, frozen=True):
    """A Service with its slices."""

    name: str
    type: str
    cluster_ips: tuple[str, ...]
    ports: tuple[PortSpec, ...]
    slices: tuple[SliceSpec, ...]
    internal_policy: str = "Cluster"
    external_policy: str = "Cluster"
    distribution: str | None = None
    external_ips: tuple[str, ...] = ()
    balancer_ips: tuple[BalancerIP, ...] = ()
    source_ranges: tuple[str, ...] = ()
    sticky: bool = False  # sessionAffinity ClientIP


class State(msgspec.Struct, frozen=True):
    """All that there is at one time; `zone` is the label of the node that both proxies run on."""

    zone: str | None
    services: tuple[ServiceSpec, ...]


class World(msgspec.Struct, frozen=True):
    """States that follow one another."""

    seed: int
    states: tuple[State, ...]


def is_ipv6(ip: str) -> bool:
    """Whether the address is of that family."""
    return ":" in ip
