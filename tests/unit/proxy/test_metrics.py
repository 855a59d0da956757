"""Metrics: names and labels that dashboards rely on, and counts of one state."""

from collections.abc import Iterable

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, Metric

from endpointslice.snapshot import EMPTY, Changed, apply_events
from endpointslice.topology import Tier
from endpointslice.types import Family, Kind, ServiceName, Skipped
from proxy import metrics
from proxy.kernel.change import Counters
from proxy.kernel.ruleset import SetId, SetName
from proxy.metrics import KernelCollector, Published, SourceCollector
from proxy.planner.fragments import Label
from proxy.planner.totals import NoLocal, PolicyKind
from proxy.sources import KindStatus

PORTS = SetId(Family.IPV4, SetName.SERVICE_PORTS)
NEAR = Label(ServiceName("default/web"), "http", Tier.SAME_NODE)
FAR = Label(ServiceName("default/web"), "http", Tier.CLUSTER)
NOTHING = Published(EMPTY, {}, {}, {}, {})


def samples(metrics_found: Iterable[Metric], name: str) -> dict[tuple[str, ...], float]:
    """Label values to value, of the samples of one name."""
    return {
        tuple(sample.labels.values()): sample.value
        for metric in metrics_found
        for sample in metric.samples
        if sample.name == name
    }


def collect(state: Published, counters: Counters | None = None) -> list[Metric]:
    return list(KernelCollector(lambda: state, lambda: counters or {}).collect())


def test_connections_are_those_counted_now_and_those_of_counters_that_ended() -> None:
    state = NOTHING._replace(labels={(PORTS, b"a"): NEAR, (PORTS, b"b"): FAR}, totals={NEAR: 100, FAR: 7})

    found = collect(state, {(PORTS, b"a"): 5, (PORTS, b"not ours"): 1})

    assert samples(found, "closeby_connections_total") == {
        ("default", "web", "http", "same-node"): 105,
        ("default", "web", "http", "cluster"): 7,
    }


def test_endpoints_have_a_sample_of_every_tier() -> None:
    found = samples(collect(NOTHING._replace(tiers={Tier.SAME_NODE: 3})), "closeby_endpoints")

    assert found == {**dict.fromkeys(((tier.value,) for tier in Tier), 0), ("same-node",): 3}


def test_kinds_of_which_nothing_is_heard_are_named() -> None:
    status = {
        Kind.SERVICE: KindStatus(complete=True, connected=True),
        Kind.NODE: KindStatus(complete=True, error="503"),
    }

    found = samples(SourceCollector(lambda: status).collect(), "closeby_source_connected")

    assert found == {("Node",): 0, ("Service",): 1}


def test_ports_without_local_endpoints_have_kube_proxys_name_and_labels() -> None:
    state = NOTHING._replace(no_local={NoLocal(PolicyKind.EXTERNAL, Family.IPV6): 2})

    found = samples(collect(state), "kubeproxy_sync_proxy_rules_no_local_endpoints_total")

    assert found == {("IPv4", "internal"): 0, ("IPv4", "external"): 0, ("IPv6", "internal"): 0, ("IPv6", "external"): 2}


def test_skipped_objects_are_counted_by_reason() -> None:
    parts = (Skipped("Service a/b", "bad-address"), Skipped("Service a/b port 1", "bad-port"))
    snapshot, _ = apply_events(EMPTY, [Changed(Kind.SERVICE, f"a/{name}", None, parts) for name in "bc"])

    found = samples(collect(NOTHING._replace(snapshot=snapshot)), "closeby_skipped_objects")

    assert found == {("bad-address",): 2, ("bad-port",): 2}


class Loop:
    """Publishes a state after another; what the kernel counts belongs to the last."""

    def __init__(self, *states: Published) -> None:
        self.states = list(states)

    def published(self) -> Published:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def collect(self, counters: Counters) -> dict[tuple[str, ...], float]:
        found = KernelCollector(self.published, lambda: counters).collect()
        return samples(found, "closeby_connections_total")


BEFORE = NOTHING._replace(labels={(PORTS, b"a"): FAR})
WRITING = BEFORE._replace(writing=True)
AFTER = NOTHING._replace(labels={(PORTS, b"a"): NEAR}, totals={FAR: 100})


@pytest.mark.parametrize(
    "states",
    [
        pytest.param([BEFORE, WRITING, AFTER], id="a change began while the counters were read"),
        pytest.param([WRITING, WRITING, AFTER], id="a change was on its way"),
        pytest.param([BEFORE, AFTER], id="a change came and went while the counters were read"),
    ],
)
def test_counts_are_never_of_two_states(states: list[Published]) -> None:
    assert Loop(*states).collect({(PORTS, b"a"): 5}) == {
        ("default", "web", "http", "cluster"): 100,
        ("default", "web", "http", "same-node"): 5,
    }


def test_while_a_change_never_ends_a_scrape_has_all_but_connections() -> None:
    """Counts of two states may fall, and Prometheus would take that for a restart."""
    names = {metric.name for metric in KernelCollector(lambda: WRITING, lambda: {(PORTS, b"a"): 5}).collect()}

    assert "closeby_connections" not in names
    assert "closeby_endpoints" in names


def test_kube_proxys_names_are_there_with_the_family_as_label() -> None:
    for family in metrics.FAMILIES:
        metrics.SYNC_SECONDS.labels(family).observe(0.001)
        metrics.LAST_SYNC.labels(family).set(1.0)
    names = {metric.name for metric in REGISTRY.collect()}

    assert names >= {
        "kubeproxy_sync_proxy_rules_duration_seconds",
        "kubeproxy_sync_full_proxy_rules_duration_seconds",
        "kubeproxy_sync_partial_proxy_rules_duration_seconds",
        "kubeproxy_sync_proxy_rules_last_timestamp_seconds",
        "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds",
        "kubeproxy_sync_proxy_rules_endpoint_changes",
        "kubeproxy_sync_proxy_rules_endpoint_changes_pending",
        "kubeproxy_sync_proxy_rules_service_changes",
        "kubeproxy_sync_proxy_rules_service_changes_pending",
        "kubeproxy_sync_proxy_rules_nftables_sync_failures",
        "kubeproxy_network_programming_duration_seconds",
        "closeby_foreign_changes",
        "closeby_loop_errors",
        "closeby_elements_written",
    }
    assert REGISTRY.get_sample_value(
        "kubeproxy_sync_proxy_rules_duration_seconds_bucket", {"ip_family": "IPv4", "le": "0.001"}
    )


def test_registering_the_collector_reads_nothing() -> None:
    def count() -> Counters:
        raise AssertionError("read at registration")

    CollectorRegistry().register(KernelCollector(lambda: NOTHING, count))
