"""A random world: what the API holds, state after state. Plain values, so that a world can be shrunk and printed."""

import msgspec


class PortSpec(msgspec.Struct, frozen=True):
    """A port of a Service."""

    name: str
    protocol: str  # TCP, UDP or SCTP
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
    pod: str = ""  # of its targetRef


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
    label: str = ""  # one of HIDING_LABELS
    made: int = 0  # another number: deleted, and created anew


class BalancerIP(msgspec.Struct, frozen=True):
    """An address in a Service's status."""

    ip: str
    mode: str  # VIP or Proxy


class DaemonSetSpec(msgspec.Struct, frozen=True):
    """The DaemonSet that a Service selects, named as the Service."""

    desired: int  # nodes that it says it is meant for
    owns: bool  # this node's pods say so, too; else another owner


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
    label: str = ""  # one of HIDING_LABELS
    daemon_set: DaemonSetSpec | None = None


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
