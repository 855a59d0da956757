"""From the answer to what is written: one patch of a status for each object that differs, and its Events. Pure.

Nothing is written that stands there already, so an idle cluster costs the API server nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from endpointslice.addresses import family_of
from endpointslice.types import IP, ServiceName
from proxy.addresses.allocate import Answer, Grant
from proxy.addresses.decode import USABLE, PoolObject
from proxy.addresses.services import CONFLICT, GRANTED
from proxy.addresses.state import State
from proxy.addresses.types import Condition, Conflicts, Kind, PoolStatus, Service
from proxy.notices import Notice

GROUP_VERSION = "metallb.io/v1beta1"
_TRUE, _FALSE = "True", "False"


class Write(NamedTuple):
    """One patch of a status, and what to tell once it is stored."""

    kind: Kind
    name: str
    patch: Mapping[str, Any]
    notices: tuple[Notice, ...] = ()


class Planned(NamedTuple):
    """What can be written now, and whether more follows once it is."""

    writes: tuple[Write, ...]
    postponed: bool


def plan_services(services: Mapping[ServiceName, Service], answer: Answer, now: str) -> Planned:
    """For each Service whose status differs from its grant; `now` is RFC 3339, for conditions that change.

    An address stands in the status of one who gives it up before it stands in another's: who takes it waits until that
    is written. Where all wait for each other they give up first.
    """
    given_up = {ip: name for name, grant in answer.grants.items() for ip in services[name].held if ip not in grant.ips}
    ready: list[Write] = []
    waiting: list[Service] = []
    for name, service in services.items():
        grant = answer.grants.get(name)
        if grant is not None and any(given_up.get(ip, name) != name for ip in grant.ips):
            waiting.append(service)
        elif grant is not None:
            ready += _plan_service(service, grant, now)
        else:
            ready += _plan_other(service)
    if waiting and not ready:
        ready = [write for service in waiting for write in _plan_release(service, answer.grants[service.name])]
    return Planned(tuple(ready), bool(waiting))


def _plan_release(service: Service, grant: Grant) -> Iterator[Write]:
    """Give up what isn't to be kept, and nothing else yet."""
    kept = [ip for ip in service.held if ip in grant.ips]
    if len(kept) < len(service.held):
        yield Write(
            Kind.SERVICE, service.name, _at_version(service, {"loadBalancer": _ingress(kept)}), _lost(service, grant)
        )


def _ingress(ips: Sequence[IP]) -> dict[str, Any]:
    return {"ingress": [{"ip": ip, "ipMode": "VIP"} for ip in ips] or None}


def _plan_other(service: Service) -> Iterator[Write]:
    """What was ours of a Service that isn't of type LoadBalancer any more; the API has emptied the rest."""
    if not service.wants and service.granted is not None:
        patch: dict[str, Any] = {"conditions": [{"type": GRANTED, "$patch": "delete"}]}
        if service.held:
            patch["loadBalancer"] = {"ingress": None}
        yield Write(Kind.SERVICE, service.name, _at_version(service, patch))


def _plan_service(service: Service, grant: Grant, now: str) -> Iterator[Write]:
    wanted = describe_grant(service, grant)
    patch: dict[str, Any] = {}
    if grant.ips != service.held:
        patch["loadBalancer"] = _ingress(grant.ips)
    if _differs(service.granted, wanted):
        patch["conditions"] = [_render(GRANTED, service.granted, wanted, now)]
    if patch:
        yield Write(Kind.SERVICE, service.name, _at_version(service, patch), tuple(_notices(service, grant, wanted)))


def plan_conflicts(state: State, now: str) -> Iterator[Write]:
    """A condition of each Service for whose addresses a node says that a foreign host answers, while it does."""
    met: dict[str, set[tuple[str, str]]] = {}
    for found in state.of(Kind.L2_STATUS, Conflicts).values():
        if found.strangers:
            met.setdefault(found.service, set()).update(found.strangers)
    for name, service in state.of(Kind.SERVICE, Service).items():
        strangers = sorted(met.get(name, ()))
        if not (strangers or service.conflict):
            continue
        said = "; ".join(f"{ip}: {mac}, which is no node's, answers for it" for ip, mac in strangers)
        wanted = Condition(_TRUE, "ForeignHost", said)
        if not strangers:
            gone = {"conditions": [{"type": CONFLICT, "$patch": "delete"}]}
            yield Write(Kind.SERVICE, name, _at_version(service, gone))
        elif _differs(service.conflict, wanted):
            told = {"conditions": [_render(CONFLICT, service.conflict, wanted, now)]}
            yield Write(Kind.SERVICE, name, _at_version(service, told))


def _at_version(service: Service, status: Mapping[str, Any]) -> dict[str, Any]:
    """Refused with 409 if the Service has changed since: the answer was for what it was."""
    return {"metadata": {"resourceVersion": service.version}, "status": status}


def describe_grant(service: Service, grant: Grant) -> Condition:
    """Whether the Service has what it asks for, as a condition."""
    held = " and ".join(grant.ips)
    if grant.refusal is not None:
        keeps = f"; it keeps {held}" if held else ""
        return Condition(_FALSE, grant.refusal.rule, f"{grant.refusal.what}{keeps}")
    missing = sorted(set(service.families) - set(map(family_of, grant.ips)))
    short = f"; no {missing[0]} address is free there" if missing and not _asks_for(service) else ""
    return Condition(_TRUE, "Granted", f"{held} from pool {grant.pool or '(unreadable)'}{short}")


def _asks_for(service: Service) -> bool:
    return bool(service.load_balancer_ip) or any(key.endswith("loadBalancerIPs") for key in service.annotations)


def _notices(service: Service, grant: Grant, wanted: Condition) -> Iterator[Notice]:
    new: list[IP] = [ip for ip in grant.ips if ip not in service.held]
    yield from _lost(service, grant)
    if new:
        yield _about(service, "IPAllocated", "Assign", f"{' and '.join(new)} from pool {grant.pool}")
    if grant.refusal is not None and _differs(service.granted, wanted):
        note = f"{grant.refusal.rule}: {wanted.message}"
        yield _about(service, "AllocationFailed", "Assign", note, warning=True)


def _lost(service: Service, grant: Grant) -> tuple[Notice, ...]:
    if grant.released is None or not set(service.held) - set(grant.ips):
        return ()
    note = f"{grant.released.rule}: {grant.released.what}"
    return (_about(service, "ClearAssignment", "Release", note, warning=True),)


def _about(service: Service, reason: str, action: str, note: str, *, warning: bool = False) -> Notice:
    namespace, _slash, name = service.name.partition("/")
    return Notice(reason, action, note, Kind.SERVICE, name, namespace, warning)


def plan_pools(state: State, answer: Answer, told: Mapping[str, Condition], now: str) -> Iterator[Write]:
    """For each pool whose status differs; `told` is what was written of it before.

    A schema without conditions (MetalLB's own) drops them: they aren't written again and again.
    """
    for name, pool in state.of(Kind.POOL, PoolObject).items():
        wanted = describe_pool(state, name)
        usage = answer.usage.get(name, PoolStatus())
        dropped = name in told and not _differs(told[name], wanted)
        if usage == pool.status and (not _differs(pool.usable, wanted) or dropped):
            continue
        status = {
            "assignedIPv4": usage.assigned_ipv4,
            "assignedIPv6": usage.assigned_ipv6,
            "availableIPv4": usage.available_ipv4,
            "availableIPv6": usage.available_ipv6,
            "conditions": [_render(USABLE, pool.usable, wanted, now)],
        }
        yield Write(Kind.POOL, name, {"status": status})


def describe_pool(state: State, name: str) -> Condition:
    """Whether the newest version of the pool is in use."""
    problems = state.accepted.problems.get(name, ())
    if not problems:
        return Condition(_TRUE, "Valid", "addresses are given out of it")
    return Condition(_FALSE, "Invalid", "; ".join(map(str, problems)))


def plan_problem_notices(
    before: Mapping[tuple[Kind, str], str], now: Mapping[tuple[Kind, str], str], namespace: str
) -> Iterator[Notice]:
    """An Event for each pool or advertisement that is wrong in a new way."""
    for (kind, name), what in now.items():
        if before.get((kind, name)) != what:
            yield Notice("Invalid", "Check", what, kind, name, namespace, warning=True, api_version=GROUP_VERSION)


def _differs(held: Condition | None, wanted: Condition) -> bool:
    said = (wanted.status, wanted.reason, wanted.message)
    return held is None or (held.status, held.reason, held.message) != said


def _render(kind: str, held: Condition | None, wanted: Condition, now: str) -> dict[str, str]:
    """The condition as the API has it; its time is that of the last change of its status."""
    same = held is not None and held.status == wanted.status and held.since
    return {
        "type": kind,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": wanted.message,
        "lastTransitionTime": held.since if held is not None and same else now,
    }
