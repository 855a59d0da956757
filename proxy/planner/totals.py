"""Counts that Services add to, kept as a sum: what metrics show must not cost a pass over all Services."""

from collections import Counter
from collections.abc import Hashable, Mapping
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from endpointslice.topology import Tier, Verdict, keeps_local
from endpointslice.types import Family, ServiceName, TrafficPolicy
from proxy.planner.plan import ServicePlan

T = TypeVar("T", bound=Hashable)

_MOST_SHARED = 4096  # different parts that are looked for; Services come in few shapes


class PolicyKind(StrEnum):
    """Which of the two traffic policies; kube-proxy's words for its metric's label."""

    INTERNAL = "internal"
    EXTERNAL = "external"


class NoLocal(NamedTuple):
    """A kind of Service port that a Local policy leaves without endpoints here."""

    policy: PolicyKind
    family: Family


class Totals(Generic[T]):
    """How often each value counts, over all Services."""

    def __init__(self) -> None:
        self.sums: Counter[T] = Counter()
        self._parts: dict[ServiceName, tuple[tuple[T, int], ...]] = {}
        self._shared: dict[tuple[tuple[T, int], ...], tuple[tuple[T, int], ...]] = {}  # equal parts are one object

    def replace(self, service: ServiceName, counts: Mapping[T, int]) -> None:
        """Let the Service count this much from now on; nothing for an empty mapping."""
        for value, count in self._parts.pop(service, ()):
            self.sums[value] -= count
        if counts:
            part = tuple(counts.items())
            if len(self._shared) >= _MOST_SHARED:
                self._shared.clear()
            self._parts[service] = self._shared.setdefault(part, part)
            for value, count in part:  # Counter.update takes four times as long for one or two
                self.sums[value] += count


def count_tiers(plan: ServicePlan) -> Mapping[Tier, int]:
    """Endpoints in use for the ClusterIPs, by tier."""
    tiers: dict[Tier, int] = {}
    for port in plan.ports:
        choice = port.choice.cluster_ip.choice
        tiers[choice.tier] = tiers.get(choice.tier, 0) + len(choice.endpoints)
    return tiers


def count_no_local(plan: ServicePlan) -> Mapping[NoLocal, int]:
    """The ports that a Local policy leaves without endpoints here."""
    service = plan.service
    internal = service.internal_traffic_policy is TrafficPolicy.LOCAL
    external = keeps_local(service)
    if not (internal or external):
        return {}
    counts: Counter[NoLocal] = Counter()
    for port in plan.ports:
        if internal and port.choice.cluster_ip.verdict is Verdict.DROP:
            counts[NoLocal(PolicyKind.INTERNAL, port.family)] += 1
        if external and port.choice.external.verdict is Verdict.DROP:
            counts[NoLocal(PolicyKind.EXTERNAL, port.family)] += 1
    return counts
