"""What one Service's frontends do on one node: the decision per frontend and kind of client, with its reason.

`closeby plan`, `closeby explain` and the elements all come from these values, so what is shown is what is programmed.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import msgspec

from endpointslice.daemonsets import SameNode
from endpointslice.endpoints import merge_endpoints
from endpointslice.topology import Decision, Place, PortChoice, Verdict, choose_port, keeps_local
from endpointslice.types import CIDR, IP, Endpoint, Family, Service, ServiceName, ServicePort, Slice
from proxy.planner.frontends import Claims, Frontend, FrontendKind, claim_key, port_frontends, service_families
from proxy.planner.source_ranges import choose_sources


class Client(StrEnum):
    """Whose traffic an answer is for."""

    ANY = "any"
    OUTSIDE = "outside"  # neither this node's host nor, where a detector tells, a pod
    THIS_NODE = "this-node"  # this node's pods and host


class Source(StrEnum):
    """What the endpoint sees as the client's address."""

    KEPT = "kept"
    MASQUERADED = "masqueraded"


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What becomes of a new connection of such a client."""

    client: Client
    decision: Decision
    source: Source


class FrontendPlan(msgspec.Struct, frozen=True):
    """One frontend; two answers where clients on this node fare differently, the outside one first."""

    frontend: Frontend
    answers: tuple[Answer, ...]
    sources: tuple[CIDR, ...] = ()  # the only ones that may reach it; (): all


class Lost(NamedTuple):
    """A frontend that another Service has."""

    frontend: Frontend
    winner: ServiceName


class PortPlan(msgspec.Struct, frozen=True):
    """One Service port in one family."""

    port: ServicePort
    family: Family
    choice: PortChoice
    endpoints: tuple[Endpoint, ...]  # all of them, chosen or not
    frontends: tuple[FrontendPlan, ...]
    lost: tuple[Lost, ...] = ()


class ServicePlan(msgspec.Struct, frozen=True):
    """One Service on one node."""

    service: Service
    same_node: SameNode
    ports: tuple[PortPlan, ...]


class Rules(NamedTuple):
    """What of the settings and the Node changes answers."""

    detects_pods: bool  # pods can be told from others
    masquerade_all: bool
    families: frozenset[Family] = frozenset(Family)  # in which they can
    node_ips: tuple[IP, ...] = ()  # the node's own addresses


def answer_cluster_ip(decision: Decision, rules: Rules) -> tuple[Answer, ...]:
    """ClusterIP traffic is masqueraded only if its source isn't a pod, which only a detector can tell."""
    if rules.masquerade_all:
        return (Answer(Client.ANY, decision, Source.MASQUERADED),)
    if not rules.detects_pods or decision.verdict is not Verdict.DNAT:
        return (Answer(Client.ANY, decision, Source.KEPT),)
    return (
        Answer(Client.OUTSIDE, decision, Source.MASQUERADED),
        Answer(Client.THIS_NODE, decision, Source.KEPT),
    )


def answer_external(choice: PortChoice, rules: Rules, *, local: bool) -> tuple[Answer, ...]:
    """Policy Cluster masquerades everyone; Local keeps the source, and lets this node's own traffic go anywhere.

    This node's own traffic is that of its pods, which keep their address, and of the host, which doesn't; without a
    detector it is the host's alone.
    """
    if not local:
        return (Answer(Client.ANY, choice.external, Source.MASQUERADED),)
    if choice.short_circuit == choice.external:
        return (Answer(Client.ANY, choice.external, Source.KEPT),)
    own = Source.KEPT if rules.detects_pods else Source.MASQUERADED
    return (
        Answer(Client.OUTSIDE, choice.external, Source.KEPT),
        Answer(Client.THIS_NODE, choice.short_circuit, own),
    )


class ServiceState(NamedTuple):
    """A Service, its slices, and the same-node rule's answer for it."""

    service: Service
    slices: Iterable[Slice]
    same_node: SameNode


def plan_service(state: ServiceState, place: Place, rules: Rules, claims: Claims) -> ServicePlan:
    """The Service's plan on the node at `place`; frontends that another Service won are in `lost`."""
    by_family: dict[Family, list[Slice]] = {}
    for piece in state.slices:
        by_family.setdefault(piece.family, []).append(piece)
    around = (place, rules, claims)
    ports = [
        _plan_port(state, port, (family, by_family.get(family, ())), around)
        for family in service_families(state.service)
        for port in state.service.ports
    ]
    return ServicePlan(state.service, state.same_node, tuple(ports))


def _plan_port(
    state: ServiceState,
    port: ServicePort,
    of_family: tuple[Family, Iterable[Slice]],
    around: tuple[Place, Rules, Claims],
) -> PortPlan:
    family, slices = of_family
    place, rules, claims = around
    if family not in rules.families:
        rules = rules._replace(detects_pods=False)
    service = state.service
    endpoints = merge_endpoints(slices, port, family)
    choice = choose_port(endpoints, service, port, place, state.same_node)
    cluster_ip = answer_cluster_ip(choice.cluster_ip, rules)
    external: tuple[Answer, ...] | None = None
    plans: list[FrontendPlan] = []
    lost: list[Lost] = []
    for frontend in port_frontends(service, port, family):
        winner = claims.winner(claim_key(frontend))
        if winner.service != service.name or winner.port != port.name:
            lost.append(Lost(frontend, winner.service))
        elif frontend.kind is FrontendKind.CLUSTER_IP:
            plans.append(FrontendPlan(frontend, cluster_ip))
        else:
            if external is None:
                external = answer_external(choice, rules, local=keeps_local(service))
            firewalled = frontend.kind is FrontendKind.LOAD_BALANCER_IP and service.source_ranges
            sources = choose_sources(service, family, rules.node_ips) if firewalled else ()
            plans.append(FrontendPlan(frontend, external, sources))
    return PortPlan(port, family, choice, endpoints, tuple(plans), tuple(lost))
