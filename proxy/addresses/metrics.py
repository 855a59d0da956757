"""What `/metrics` says of pools, with the names that MetalLB's alerts ask for."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from proxy.addresses.allocate import Answer

_PREFIX = "metallb_allocator_"
_FAMILIES = ("ipv4", "ipv6")


class UsageCollector:
    """Of the last answer; a pool that is gone has no series any more. Shown and collected from different threads."""

    def __init__(self) -> None:
        self._answer: Answer | None = None  # replaced as a whole

    def show(self, answer: Answer) -> None:
        """From now on."""
        self._answer = answer

    def collect(self) -> Iterator[Metric]:
        """Called at a scrape."""
        total = GaugeMetricFamily(f"{_PREFIX}addresses_total", "Addresses of the pool.", labels=["pool"])
        used = GaugeMetricFamily(f"{_PREFIX}addresses_in_use_total", "Addresses given to Services.", labels=["pool"])
        served = GaugeMetricFamily(f"{_PREFIX}services_allocated_total", "Services with an address.", labels=["pool"])
        by_family = [
            GaugeMetricFamily(f"{_PREFIX}{family}_addresses_{what}", f"{family} addresses, {what}.", labels=["pool"])
            for family in _FAMILIES
            for what in ("total", "in_use_total")
        ]
        answer = self._answer
        for pool, usage in answer.usage.items() if answer else ():
            v4, v6 = usage.assigned_ipv4 + usage.available_ipv4, usage.assigned_ipv6 + usage.available_ipv6
            total.add_metric([pool], float(v4 + v6))
            used.add_metric([pool], float(usage.assigned_ipv4 + usage.assigned_ipv6))
            for gauge, value in zip(by_family, (v4, usage.assigned_ipv4, v6, usage.assigned_ipv6), strict=True):
                gauge.add_metric([pool], float(value))
            served.add_metric(
                [pool], float(sum(grant.pool == pool for grant in answer.grants.values()) if answer else 0)
            )
        yield from (total, used, served, *by_family)
