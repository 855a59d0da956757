"""`closeby explain`: where a Service's traffic goes on a node, and why."""

import sys
from typing import Any, NoReturn

import click
from rich.console import Console
from rich.markup import escape

from endpointslice.addresses import parse_ip
from endpointslice.topology import Place, Verdict, left_out
from endpointslice.types import Endpoint, ServiceName
from proxy.cli.kube_proxy import settings_options
from proxy.cli.loading import load_options, load_state
from proxy.cli.show import new_table, open_console, show_tier
from proxy.config import ConfigError
from proxy.explain import LEFT_OUT, SAME_NODE, WHY, Who, choose_answer, classify_client, explain_sources, show_frontend
from proxy.offline import Loaded
from proxy.planner.plan import PortPlan, ServicePlan
from proxy.planner.planner import plan_all
from proxy.report import lost_frontends, show_endpoint


@click.command()
@click.argument("service", metavar="NAMESPACE/SERVICE")
@load_options
@click.option("--node", default="", metavar="NAME", help="The node to explain; this host's own name by default.")
@click.option("--from", "client", default="", metavar="CLIENT-IP", help="Only what holds for a client of this address.")
@settings_options
def explain(service: str, client: str, **flags: Any) -> None:
    """Explain where a Service's traffic goes on a node, and why, with every endpoint and its reason.

    \b
    Examples:
      closeby explain kube-system/kube-dns                   on the node where closeby runs
      closeby explain default/web --node node-2 --manifests ./manifests
      closeby explain default/web --from 192.0.2.7 --dump closeby-dump.json
    """  # noqa: D301 (click reads the backslash)
    if service.count("/") != 1:
        raise ConfigError(f'"{service}": write it as NAMESPACE/SERVICE, such as default/web')
    asked = parse_ip(client) if client else None
    if client and asked is None:
        raise ConfigError(f'--from: "{client}" is not an IP address')
    loaded, settings = load_state(flags)
    plans = {plan.service.name: plan for plan in plan_all(loaded.snapshot, settings)}
    plan = plans.get(ServiceName(service))
    if plan is None:
        _say_absent(loaded, service)
    console = open_console()
    node = loaded.snapshot.nodes.get(settings.node)
    place = Place(settings.node, node.zone if node is not None else None)
    who: Who | None = None
    _show_service(console, plan, place)
    if asked is not None:
        who, why = classify_client(asked, node, settings)
        console.print(f"Client {asked}: {why}.")
    for port in plan.ports:
        _show_answers(console, port, who)
        for frontend in port.frontends:
            if words := explain_sources(plan.service, frontend, asked):
                console.print(f"  {escape(words)}")
        _show_endpoints(console, port, place)
    for lost in lost_frontends(plan):
        console.print(f"[red]Not served:[/] {escape(lost.object)}: {escape(lost.detail)}.")


def _say_absent(loaded: Loaded, service: str) -> NoReturn:
    for (kind, name), parts in loaded.snapshot.skipped.items():
        if name == service and kind.value == "Service":
            reasons = "; ".join(f"{part.reason} {part.detail}".strip() for part in parts)
            click.echo(f"closeby: Service {service} is not proxied: {reasons}", err=True)
            sys.exit(1)
    click.echo(f"closeby: there is no Service {service} in this source", err=True)
    sys.exit(1)


def _show_service(console: Console, plan: ServicePlan, place: Place) -> None:
    service = plan.service
    timeout_s = service.affinity_timeout_s
    affinity = "None" if timeout_s is None else f"ClientIP, for {timeout_s} s after the last connection"
    prefers = service.traffic_distribution.value if service.traffic_distribution else "none"
    console.print(
        f"[bold]{service.name}[/] ({service.type}) on node [bold]{place.node}[/], zone {place.zone or 'unknown'}\n"
        f"  trafficDistribution {prefers}, internalTrafficPolicy {service.internal_traffic_policy.value}, "
        f"externalTrafficPolicy {service.external_traffic_policy.value}, sessionAffinity {affinity}\n"
        f"  same node for a DaemonSet's pods: {SAME_NODE[plan.same_node.why]}"
    )


def _show_answers(console: Console, port: PortPlan, who: Who | None) -> None:
    name = port.port.name or str(port.port.port)
    title = f"Port {name}/{port.port.protocol.value}, {port.family.value}"
    table = new_table(title, "FRONTEND", "FROM", "GOES TO", "TIER", "SOURCE", "WHY")
    for frontend in port.frontends:
        where = show_frontend(frontend.frontend)
        for answer in frontend.answers if who is None else (choose_answer(frontend, who),):
            choice = answer.decision.choice
            served = answer.decision.verdict is Verdict.DNAT
            goes_to = "\n".join(show_endpoint(e) for e in choice.endpoints) if served else answer.decision.verdict.value
            tier, source = show_tier(choice.tier.value), answer.source.value
            table.add_row(escape(where), answer.client.value, escape(goes_to), tier, source, WHY[choice.why])
    console.print(table)


def _show_endpoints(console: Console, port: PortPlan, place: Place) -> None:
    if not port.endpoints:
        console.print("  No endpoint at all.\n")
        return
    chosen = port.choice.cluster_ip.choice
    reasons = dict(left_out(port.endpoints, chosen, place))
    title = "Endpoints, for ClusterIP traffic"
    table = new_table(title, "ENDPOINT", "POD", "NODE", "ZONE", "STATE", "HINTS", "CHOSEN")
    for endpoint in port.endpoints:
        why = reasons.get(endpoint)
        table.add_row(
            escape(show_endpoint(endpoint)),
            endpoint.pod or "",
            endpoint.node or "",
            endpoint.zone or "",
            _show_state(endpoint),
            " ".join(sorted([*(f"zone={z}" for z in endpoint.for_zones), *(f"node={n}" for n in endpoint.for_nodes)])),
            "[green]yes[/]" if why is None else f"no: {LEFT_OUT[why]}",
        )
    console.print(table)


def _show_state(endpoint: Endpoint) -> str:
    if endpoint.ready:
        return "ready, terminating" if endpoint.terminating else "ready"
    if endpoint.terminating:
        return "terminating, serving" if endpoint.serving else "terminating"
    return "not ready"
