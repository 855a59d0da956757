"""What the loop lets others see: health, connections by tier, objects that can't be used."""

from structlog.testing import capture_logs

from endpointslice.snapshot import Changed
from endpointslice.topology import Tier
from endpointslice.types import IP, Kind, Node, NodeName, ServiceName, Skipped, Zone
from proxy.kernel.ruleset import SetId
from proxy.messages import Events
from proxy.planner.fragments import Label
from tests.builders import a_slice, service, slice_endpoint, zones
from tests.loop import KeepingKernel, running

A, B, C = (slice_endpoint(f"10.244.0.{number}", for_zones=zones("za")) for number in (1, 2, 3))
WEB, PIECE = service(), a_slice([A, B])
N1 = Node(NodeName("n1"), addresses=(IP("192.0.2.1"),))


def test_a_change_that_waits_too_long_is_unhealthy_until_it_is_written() -> None:
    with running(longest_retry_s=0.02) as loop:
        loop.list_all(WEB, PIECE, N1)
        assert loop.loop.health().healthy
        loop.kernel.open.clear()

        loop.put(a_slice([C]))
        loop.until(lambda: not loop.loop.health().healthy)
        loop.kernel.open.set()

        loop.until(lambda: loop.loop.health().healthy)
        assert "10.244.0.3:8080" in " ".join(loop.shown())


def test_a_node_that_leaves_is_not_eligible() -> None:
    with running() as loop:
        loop.list_all(N1)
        assert loop.loop.health().node_eligible

        loop.put(Node(N1.name, addresses=N1.addresses, leaving=True))

        loop.until(lambda: not loop.loop.health().node_eligible)


FAR, NEAR = (
    Label(ServiceName("default/web"), "http", Tier.CLUSTER),
    Label(ServiceName("default/web"), "http", Tier.SAME_ZONE),
)


def counter(loop_kernel: KeepingKernel) -> tuple[SetId, bytes]:
    """The only element that counts."""
    assert loop_kernel.held is not None
    (key,) = [(i, key) for i, part in loop_kernel.held.elements.items() if i.name == "service_ports" for key in part]
    return key


def test_connections_keep_the_tier_they_were_counted_under() -> None:
    with running() as loop:
        loop.list_all(WEB, PIECE, N1)
        key = counter(loop.kernel)
        before = loop.loop.published
        loop.kernel.counts[key] = 7

        loop.put(Node(N1.name, Zone("za"), N1.addresses))
        loop.until(lambda: loop.loop.published.labels == {key: NEAR})

        assert before.labels == {key: FAR}
        assert loop.loop.published.totals == {FAR: 7}
        assert loop.loop.published.tiers[Tier.SAME_ZONE] == 2

        loop.kernel.counts[key] = 5
        loop.put(Node(N1.name, None, N1.addresses))
        loop.until(lambda: loop.loop.published.labels == {key: FAR})
        assert loop.loop.published.totals == {FAR: 7, NEAR: 5}


def test_connections_of_a_service_that_is_gone_are_forgotten() -> None:
    with running() as loop:
        loop.list_all(WEB, PIECE)
        loop.kernel.counts[counter(loop.kernel)] = 7

        loop.send(Events((Changed(Kind.SERVICE, WEB.name, None),)))
        loop.until(lambda: not loop.loop.published.labels)

        assert loop.loop.published.totals == {}


def test_what_cannot_be_used_is_told_and_published_without_a_write() -> None:
    skipped = Skipped("Service default/x", "bad-object", "$.spec.ports[0].port")
    with running() as loop, capture_logs() as logs:
        loop.list_all(WEB, PIECE)

        loop.send(Events((Changed(Kind.SERVICE, "default/x", None, (skipped,)),)))
        loop.until(lambda: bool(loop.loop.published.snapshot.skipped))
        loop.until(lambda: any(line["event"] == "object_skipped" for line in logs))

        assert loop.kernel.calls == ["read", "install"]
    told = [line for line in logs if line["event"] == "object_skipped"]
    assert [(line["object"], line["why"], line["detail"]) for line in told] == [
        ("Service default/x", "bad-object", "$.spec.ports[0].port")
    ]
