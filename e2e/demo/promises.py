"""What `closeby plan -o json` says of a node, and of one visit to it: the promise that the answers are judged by."""

import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from e2e.demo.visits import Visit
from e2e.world.hosts import CLUSTER_CIDRS

CLOSEBY = Path(sys.executable).with_name("closeby")


class PlanError(Exception):
    """`closeby plan` failed, or its answer lacks what a visit asks for."""


class Frontend(msgspec.Struct, frozen=True, rename={"client": "from"}):
    """A frontend as one kind of client meets it."""

    kind: str
    ip: str | None
    port: int
    client: str  # any, outside, this-node
    verdict: str  # dnat, reject, drop
    endpoints: tuple[str, ...]
    tier: str
    reason: str
    source: str  # kept, masqueraded


class ServicePort(msgspec.Struct, frozen=True):
    """A Service port with its frontends."""

    service: str
    protocol: str
    frontends: tuple[Frontend, ...]


class Plan(msgspec.Struct, frozen=True):
    """What one node programs; only the fields that the demo reads."""

    node: str
    services: tuple[ServicePort, ...]


class Promise(NamedTuple):
    """What a visit will meet."""

    verdict: str
    pods: frozenset[str]  # by name; empty unless the verdict is dnat
    tier: str
    reason: str
    masqueraded: bool  # the server sees an address of the node, not the client's


def ask_plans(manifests: Path, nodes: Iterable[str]) -> dict[str, Plan]:
    """Each node's plan for the folder; the commands run at once. PlanError with what a command said."""
    started = {node: _start_plan(manifests, node) for node in nodes}
    plans = {}
    for node, process in started.items():
        text, complaint = process.communicate()
        if process.returncode != 0:
            raise PlanError(f"closeby plan --node {node} ended with {process.returncode}: {complaint.strip()[-500:]}")
        plans[node] = msgspec.json.decode(text, type=Plan)
    return plans


def _start_plan(manifests: Path, node: str) -> subprocess.Popen[str]:
    command = [str(CLOSEBY), "plan", "--node", node, "--manifests", str(manifests), "--cluster-cidr"]
    return subprocess.Popen(
        [*command, ",".join(CLUSTER_CIDRS), "-o", "json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def choose_promise(plan: Plan, visit: Visit, pods_by_ip: Mapping[str, str]) -> Promise:
    """The plan's word on the visit; a frontend for exactly this kind of client comes before one for any."""
    found = [
        frontend
        for port in plan.services
        if (port.service, port.protocol) == (visit.service, visit.target.protocol.upper())
        for frontend in port.frontends
        if _is_meant(frontend, visit)
    ]
    if not found:
        raise PlanError(f"the plan of {plan.node} has no {visit.kind} for {visit.service} at {visit.target.ip}")
    frontend = min(found, key=lambda f: f.client == "any")
    return Promise(
        verdict=frontend.verdict,
        pods=frozenset(pods_by_ip[_host_of(endpoint)] for endpoint in frontend.endpoints),
        tier=frontend.tier,
        reason=frontend.reason,
        masqueraded=frontend.source == "masqueraded",
    )


def _is_meant(frontend: Frontend, visit: Visit) -> bool:
    if (frontend.kind, frontend.port) != (visit.kind, visit.target.port) or frontend.client not in {
        "any",
        visit.origin,
    }:
        return False
    if frontend.ip is not None:
        return frontend.ip == visit.target.ip
    # A NodePort has no address of its own; its endpoints tell the family, and without any it makes no difference.
    return all((":" in visit.target.ip) == endpoint.startswith("[") for endpoint in frontend.endpoints)


def _host_of(endpoint: str) -> str:
    return endpoint.rpartition(":")[0].strip("[]")
