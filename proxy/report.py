"""The plan as data: the contract of `closeby plan -o json`, which other tools read. Fields are added, never renamed."""

from collections.abc import Iterable, Iterator

import msgspec

from endpointslice.addresses import join_host_port
from endpointslice.snapshot import Snapshot
from endpointslice.topology import Place, Verdict, left_out
from endpointslice.types import Endpoint, Skipped
from proxy.planner.plan import Answer, FrontendPlan, PortPlan, ServicePlan
from proxy.planner.planner import plan_all
from proxy.planner.settings import Settings


class FrontendReport(msgspec.Struct, frozen=True, rename={"client": "from"}):
    """One frontend, for one kind of client."""

    kind: str  # ClusterIP, ExternalIP, LoadBalancerIP, NodePort
    ip: str | None  # None: a NodePort
    port: int
    client: str  # any, outside, this-node
    verdict: str  # dnat, reject, drop
    endpoints: tuple[str, ...]  # "ip:port", sorted
    tier: str
    reason: str
    source: str  # kept, masqueraded
    family: str
    source_ranges: tuple[str, ...] = ()  # the only sources that may reach it; empty: all


class LeftOutReport(msgspec.Struct, frozen=True):
    """An endpoint that no frontend's outside or ClusterIP traffic uses."""

    endpoint: str
    reason: str


class ServicePortReport(msgspec.Struct, frozen=True):
    """One Service port in one family."""

    service: str
    port: str  # its name, or its number where it has none
    protocol: str
    family: str
    frontends: tuple[FrontendReport, ...]
    left_out: tuple[LeftOutReport, ...]
    same_node: str  # the DaemonSet rule's answer
    affinity: int | None = None  # seconds that a client stays with its endpoint after its last use; null: off


class SkippedReport(msgspec.Struct, frozen=True):
    """An object, or a part of one, that can't be used."""

    object: str
    reason: str
    detail: str = ""


class PlanReport(msgspec.Struct, frozen=True):
    """What one node would program."""

    node: str
    zone: str | None
    services: tuple[ServicePortReport, ...]
    skipped: tuple[SkippedReport, ...]


def report_plan(snapshot: Snapshot, settings: Settings) -> PlanReport:
    """The plan of the node that the settings name."""
    node = snapshot.nodes.get(settings.node)
    place = Place(settings.node, node.zone if node is not None else None)
    plans = plan_all(snapshot, settings)
    return PlanReport(
        node=settings.node,
        zone=place.zone,
        services=tuple(report for plan in plans for report in report_service(plan, place)),
        skipped=(*_skipped_objects(snapshot), *(lost for plan in plans for lost in lost_frontends(plan))),
    )


def report_service(plan: ServicePlan, place: Place) -> tuple[ServicePortReport, ...]:
    """One report a port and family."""
    return tuple(_report_port(plan, port, place) for port in plan.ports)


def _report_port(plan: ServicePlan, port: PortPlan, place: Place) -> ServicePortReport:
    frontends = (_report_answer(port, frontend, answer) for frontend in port.frontends for answer in frontend.answers)
    return ServicePortReport(
        service=plan.service.name,
        port=port.port.name or str(port.port.port),
        protocol=port.port.protocol.value,
        family=port.family.value,
        frontends=tuple(frontends),
        left_out=tuple(
            LeftOutReport(show_endpoint(endpoint), why.value)
            for endpoint, why in left_out(port.endpoints, port.choice.cluster_ip.choice, place)
        ),
        same_node=plan.same_node.why.value,
        affinity=plan.service.affinity_timeout_s,
    )


def _report_answer(port: PortPlan, plan: FrontendPlan, answer: Answer) -> FrontendReport:
    choice = answer.decision.choice
    chosen = choice.endpoints if answer.decision.verdict is Verdict.DNAT else ()
    return FrontendReport(
        kind=plan.frontend.kind.value,
        ip=plan.frontend.ip,
        port=plan.frontend.port,
        client=answer.client.value,
        verdict=answer.decision.verdict.value,
        endpoints=tuple(sorted(show_endpoint(endpoint) for endpoint in chosen)),
        tier=choice.tier.value,
        reason=choice.why.value,
        source=answer.source.value,
        family=port.family.value,
        source_ranges=plan.sources,
    )


def show_endpoint(endpoint: Endpoint) -> str:
    """`ip:port`, an IPv6 address in brackets."""
    return join_host_port(endpoint.ip, endpoint.port)


def _skipped_objects(snapshot: Snapshot) -> Iterator[SkippedReport]:
    for parts in snapshot.skipped.values():
        yield from (_report_skipped(part) for part in parts)


def _report_skipped(skipped: Skipped) -> SkippedReport:
    return SkippedReport(skipped.object, skipped.reason, skipped.detail)


def lost_frontends(plan: ServicePlan) -> Iterable[SkippedReport]:
    """The frontends that another Service has."""
    for port in plan.ports:
        for lost in port.lost:
            where = (
                f"{lost.frontend.kind.value} {lost.frontend.ip or '*'}:{lost.frontend.port}/{port.port.protocol.value}"
            )
            yield SkippedReport(f"Service {plan.service.name} {where}", "frontend-taken", f"{lost.winner} has it")
