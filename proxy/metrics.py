"""Metrics: kube-proxy's names where it has them, and ours. Nothing is labelled by IP or pod.

What the loop knows it adds here as it happens; what the kernel counts is read when somebody asks (`KernelCollector`).
"""

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from prometheus_client import Counter, Gauge, Histogram, Info
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from endpointslice.snapshot import Snapshot
from endpointslice.topology import Tier
from endpointslice.types import Family, Kind
from proxy.kernel.change import Counters
from proxy.kernel.ruleset import SetId, SetName
from proxy.planner.fragments import Label, Labels
from proxy.planner.totals import NoLocal, PolicyKind
from proxy.sources import KindStatus

_SYNC_BUCKETS = tuple(0.001 * 2**step for step in range(15))  # kube-proxy's: 15 from 1 ms, doubling
_PROGRAMMING_BUCKETS = (  # kube-proxy's, with four below for a proxy that is done in milliseconds
    *(0.001, 0.005, 0.025, 0.1, 0.25, 0.5),
    *(float(second) for second in range(1, 60)),
    *(float(second) for second in range(60, 120, 5)),
    *(float(second) for second in range(120, 301, 30)),
)
_FAMILY = ["ip_family"]

SYNC_SECONDS = Histogram(
    "kubeproxy_sync_proxy_rules_duration_seconds",
    "Time to plan and write one change.",
    labelnames=_FAMILY,
    buckets=_SYNC_BUCKETS,
)
FULL_SYNC_SECONDS = Histogram(
    "kubeproxy_sync_full_proxy_rules_duration_seconds",
    "The same, where everything was compared.",
    labelnames=_FAMILY,
    buckets=_SYNC_BUCKETS,
)
PARTIAL_SYNC_SECONDS = Histogram(
    "kubeproxy_sync_partial_proxy_rules_duration_seconds",
    "The same, for what events touched.",
    labelnames=_FAMILY,
    buckets=_SYNC_BUCKETS,
)
LAST_SYNC = Gauge(
    "kubeproxy_sync_proxy_rules_last_timestamp_seconds", "When the kernel last agreed to a change.", _FAMILY
)
LAST_QUEUED = Gauge(
    "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds", "When a change was last queued.", _FAMILY
)
PROGRAMMING_SECONDS = Histogram(
    "kubeproxy_network_programming_duration_seconds",
    "From the change of a pod or Service (last-change-trigger-time) to the kernel's having it.",
    labelnames=_FAMILY,
    buckets=_PROGRAMMING_BUCKETS,
)
# Without a family, as kube-proxy's (1.36).
ENDPOINT_CHANGES = Counter(
    "kubeproxy_sync_proxy_rules_endpoint_changes", "EndpointSlice events that changed something."
)
SERVICE_CHANGES = Counter("kubeproxy_sync_proxy_rules_service_changes", "Service events that changed something.")
ENDPOINT_CHANGES_PENDING = Gauge("kubeproxy_sync_proxy_rules_endpoint_changes_pending", "Of those, not yet written.")
SERVICE_CHANGES_PENDING = Gauge("kubeproxy_sync_proxy_rules_service_changes_pending", "Of those, not yet written.")
SYNC_FAILURES = Counter(
    "kubeproxy_sync_proxy_rules_nftables_sync_failures", "Transactions that the kernel refused.", _FAMILY
)
CONNTRACK_SECONDS = Histogram(
    "kubeproxy_conntrack_reconciler_sync_duration_seconds",
    "Time to compare UDP flows with what Services want.",
    labelnames=_FAMILY,
    buckets=_SYNC_BUCKETS,
)
CONNTRACK_DELETED = Counter("kubeproxy_conntrack_reconciler_deleted_entries", "Flows that were deleted.", _FAMILY)
FOREIGN_CHANGES = Counter("closeby_foreign_changes", "Times that another program changed our tables.")
UNUSABLE = Gauge(
    "closeby_advertising_objects_unusable", "API objects of which something is wrong, or that can't be read.", ["kind"]
)
LOOP_ERRORS = Counter("closeby_loop_errors", "Errors of the loop that were not expected; each has a trace in the log.")
ELEMENTS_WRITTEN = Counter("closeby_elements_written", "Elements that were changed in the kernel.", ["verb"])
_SCRAPE_PAUSES_S = (0.001, 0.005, 0.02, 0.1, 0.4, 0.5)  # between tries
# The maps whose elements count new connections.
COUNTED_SETS = tuple(
    SetId(family, name)
    for family in Family
    for name in (
        SetName.SERVICE_PORTS,
        SetName.NODE_PORTS,
        SetName.LOCAL_SOURCE_PORTS,
        SetName.LOCAL_SOURCE_NODE_PORTS,
        SetName.AFFINITY_PORTS,
        SetName.AFFINITY_NODE_PORTS,
        SetName.LOCAL_SOURCE_AFFINITY_PORTS,
        SetName.LOCAL_SOURCE_AFFINITY_NODE_PORTS,
    )
)

# One transaction changes both families, so each number of a sync stands under both labels.
FAMILIES = tuple(Family)

BUILD = Info("closeby_build", "This program's version.")


class Published(NamedTuple):
    """What the loop lets others see; replaced whole, so a reader holds one consistent state."""

    snapshot: Snapshot
    labels: Labels
    totals: Mapping[Label, int]  # connections of counters that are gone
    tiers: Mapping[Tier, int]  # endpoints in use for the ClusterIPs
    no_local: Mapping[NoLocal, int]  # ports that a Local policy leaves without endpoints here
    writing: bool = False  # a change is on its way: what the kernel counts may fit neither this state nor the next


class KernelCollector(Collector):
    """Connections by Service port and tier, from the element counters, and what the Snapshot tells, at scrape time."""

    def __init__(self, published: Callable[[], Published], count: Callable[[], Counters]) -> None:
        self._published = published
        self._count = count

    def describe(self) -> Iterable[Metric]:
        """Nothing at registration: the first answer comes with the first scrape."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """The families below, of one state: if a change was written while the counters were read, read them again.

        Where that never ends connections are left out: a gap is harmless, a count that falls reads as a restart.
        """
        for pause_s in (*_SCRAPE_PAUSES_S, 0.0):
            state = self._published()
            counters = self._count()
            if not state.writing and self._published() is state:
                yield render_connections(state, counters)
                break
            time.sleep(pause_s)
        yield render_tiers(state)
        yield render_no_local(state)
        yield render_skipped(state)


class SourceCollector(Collector):
    """Of which kinds changes would reach us, asked of the source at scrape time."""

    def __init__(self, status: Callable[[], Mapping[Kind, KindStatus]]) -> None:
        self._status = status

    def describe(self) -> Iterable[Metric]:
        """Nothing at registration: the first answer comes with the first scrape."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """1 or 0 a kind."""
        family = GaugeMetricFamily(
            "closeby_source_connected", "1 while changes of these objects would arrive.", labels=["kind"]
        )
        for kind, status in sorted(self._status().items()):
            family.add_metric([kind.value], status.connected)
        yield family


def render_connections(state: Published, counters: Counters) -> Metric:
    """New connections per Service port and tier since the table was made."""
    family = CounterMetricFamily(
        "closeby_connections",
        "New connections by Service port and tier of the endpoints in use; counted in the kernel.",
        labels=["namespace", "service", "port", "tier"],
    )
    totals: Tally[Label] = Tally(state.totals)
    for key, packets in counters.items():
        if (label := state.labels.get(key)) is not None and label.counted:
            totals[label] += packets
    for label, packets in totals.items():
        namespace, _, name = label.service.partition("/")
        family.add_metric([namespace, name, label.port, label.tier.value], packets)
    return family


def render_tiers(state: Published) -> Metric:
    """Endpoints in use by tier."""
    family = GaugeMetricFamily("closeby_endpoints", "Endpoints that ClusterIP traffic uses here.", labels=["tier"])
    for tier in Tier:
        family.add_metric([tier.value], state.tiers.get(tier, 0))
    return family


def render_no_local(state: Published) -> Metric:
    """Service ports whose policy is Local and that have usable endpoints, none of them on this node."""
    family = GaugeMetricFamily(
        "kubeproxy_sync_proxy_rules_no_local_endpoints_total",
        "Service ports with a Local policy and no local endpoint.",
        labels=["ip_family", "traffic_policy"],
    )
    for ip_family in FAMILIES:
        for policy in PolicyKind:
            family.add_metric([ip_family.value, policy.value], state.no_local.get(NoLocal(policy, ip_family), 0))
    return family


def render_skipped(state: Published) -> Metric:
    """Objects, or parts of one, that can't be used, by reason."""
    family = GaugeMetricFamily("closeby_skipped_objects", "Objects or parts not used.", labels=["reason"])
    reasons = Tally(skipped.reason for parts in state.snapshot.skipped.values() for skipped in parts)
    for reason, count in sorted(reasons.items()):
        family.add_metric([reason], count)
    return family
