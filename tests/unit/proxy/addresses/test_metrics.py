from endpointslice.types import IP, ServiceName
from proxy.addresses.allocate import Answer, Grant
from proxy.addresses.metrics import UsageCollector
from proxy.addresses.types import PoolStatus


def samples(collector: UsageCollector) -> dict[str, float]:
    return {f"{one.name}{one.labels}": one.value for metric in collector.collect() for one in metric.samples}


def test_there_is_no_series_before_an_answer_and_none_of_a_pool_that_is_gone() -> None:
    collector = UsageCollector()
    assert samples(collector) == {}

    collector.show(Answer({ServiceName("shop/web"): Grant((IP("192.0.2.1"),), "p")}, {"p": PoolStatus(1, 2, 3, 4)}))
    found = samples(collector)
    collector.show(Answer({}, {}))

    assert found == {
        "metallb_allocator_addresses_total{'pool': 'p'}": 10,
        "metallb_allocator_addresses_in_use_total{'pool': 'p'}": 3,
        "metallb_allocator_services_allocated_total{'pool': 'p'}": 1,
        "metallb_allocator_ipv4_addresses_total{'pool': 'p'}": 4,
        "metallb_allocator_ipv4_addresses_in_use_total{'pool': 'p'}": 1,
        "metallb_allocator_ipv6_addresses_total{'pool': 'p'}": 6,
        "metallb_allocator_ipv6_addresses_in_use_total{'pool': 'p'}": 2,
    }
    assert samples(collector) == {}
