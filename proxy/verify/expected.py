"""What closeby would choose for each frontend, in the words of a table; and what else is meant to be found. Pure."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from endpointslice.daemonsets import SAME_NODE_OFF, SameNode, SameNodeWhy
from endpointslice.topology import Choice, Decision, Place, PortChoice, Verdict, Why, choose_port, keeps_local
from endpointslice.types import IP, Service, ServiceName
from proxy.planner.frontends import Frontend, FrontendKind
from proxy.planner.plan import FrontendPlan, PortPlan, ServicePlan
from proxy.report import show_endpoint
from proxy.verify.fields import read_cidrs
from proxy.verify.types import Fate, Key, Treatment

_REASONS = {
    Why.DAEMON_SET_ON_NODE: "closeby keeps to this node's pod of the DaemonSet, which kube-proxy doesn't know",
    Why.ENDPOINT_ZONES: "closeby goes by the endpoints' own zones where slices have no hints, kube-proxy doesn't",
    Why.ENDPOINT_NODES: "closeby goes by the endpoints' own nodes where slices have no hints, kube-proxy doesn't",
}
_HELD = "the DaemonSet has lost nodes, which the running closeby puts up with for 30 seconds"


class Alternative(msgspec.Struct, frozen=True):
    """What else may be found."""

    outside: Fate
    here: Fate
    reason: str


class Expected(msgspec.Struct, frozen=True):
    """One frontend of one Service port."""

    service: ServiceName
    port: str  # its name, or its number
    kind: FrontendKind
    treatment: Treatment
    outside: Choice
    here: Choice
    by_kube_proxy: Alternative | None = None  # None: kube-proxy would choose the same
    by_closeby: Alternative | None = None  # what a running one may still hold


class Wanted(msgspec.Struct, frozen=True):
    """All of a node."""

    place: Place
    frontends: Mapping[Key, Expected]
    contested: frozenset[Key]  # that several Services claim
    cluster_ips: frozenset[IP]
    node_addresses: frozenset[IP]


def expect(plans: Iterable[ServicePlan], place: Place, node_addresses: frozenset[IP]) -> Wanted:
    """What the plans of the node at `place` lead to."""
    ports = [(plan, port) for plan in plans for port in plan.ports]
    frontends = {
        frontend_key(one.frontend): expected
        for plan, port in ports
        for one, expected in _expect_port(plan, port, place)
    }
    contested = {frontend_key(lost.frontend) for _, port in ports for lost in port.lost}
    cluster_ips = {key.ip for key, expected in frontends.items() if expected.kind is FrontendKind.CLUSTER_IP}
    return Wanted(place, frontends, frozenset(contested), frozenset(cluster_ips), node_addresses)


def frontend_key(frontend: Frontend) -> Key:
    """What a client connects to."""
    return Key(frontend.family, frontend.ip or IP(""), frontend.protocol, frontend.port)


def _expect_port(plan: ServicePlan, port: PortPlan, place: Place) -> Iterator[tuple[FrontendPlan, Expected]]:
    service = plan.service
    plain = msgspec.structs.replace(service, traffic_distribution=None)
    peer = choose_port(port.endpoints, plain, port.port, place, SAME_NODE_OFF)
    held = port.choice
    if plan.same_node.why is SameNodeWhy.TOO_FEW_NODES:
        held = choose_port(port.endpoints, service, port.port, place, SameNode(on=True, why=SameNodeWhy.HELD))
    for one in port.frontends:
        outside, here = _decide(service, one, port.choice)
        fates = _fate(outside), _fate(here)
        served = Verdict.DNAT in {outside.verdict, here.verdict}
        seen = outside.verdict is Verdict.DNAT and one.frontend.kind is not FrontendKind.CLUSTER_IP
        treatment = Treatment(
            *fates,
            affinity_s=service.affinity_timeout_s if served else None,
            sources=read_cidrs(one.sources),
            source=one.answers[0].source if seen else None,
        )
        reason = next((words for why, words in _REASONS.items() if why in {outside.choice.why, here.choice.why}), "")
        yield (
            one,
            Expected(
                service=service.name,
                port=port.port.name or str(port.port.port),
                kind=one.frontend.kind,
                treatment=treatment,
                outside=outside.choice,
                here=here.choice,
                by_kube_proxy=_alternative(fates, _decide(service, one, peer), reason),
                by_closeby=_alternative(fates, _decide(service, one, held), _HELD),
            ),
        )


def _decide(service: Service, one: FrontendPlan, choice: PortChoice) -> tuple[Decision, Decision]:
    """The decisions for traffic from outside, and for this node's own."""
    if one.frontend.kind is FrontendKind.CLUSTER_IP:
        return choice.cluster_ip, choice.cluster_ip
    return choice.external, choice.short_circuit if keeps_local(service) else choice.external


def _alternative(fates: tuple[Fate, Fate], other: tuple[Decision, Decision], reason: str) -> Alternative | None:
    outside, here = map(_fate, other)
    return None if (outside, here) == fates else Alternative(outside, here, reason)


def _fate(decision: Decision) -> Fate:
    endpoints = decision.choice.endpoints if decision.verdict is Verdict.DNAT else ()
    return Fate(decision.verdict, tuple(sorted({show_endpoint(one) for one in endpoints})))
