"""The loop: when it writes, and what it does when something fails."""

import time

import pytest
from structlog.testing import capture_logs

from endpointslice.snapshot import Changed, Listed
from endpointslice.topology import Tier
from endpointslice.types import IP, Kind, Node, NodeName, Pod, PodName, TrafficDistribution, Zone
from proxy.kernel.change import Installed, KernelError
from proxy.messages import Events, ForeignChange, HostAddresses
from proxy.pacing import Pacing
from proxy.sync import FOREIGN_GAP_S
from tests.builders import HTTP_NODE_PORT, a_slice, daemon_set, service, slice_endpoint, zones
from tests.elements_text import show_elements
from tests.loop import KeepingKernel, first_lists, metric, running

A, B, C = (slice_endpoint(f"10.244.0.{number}", for_zones=zones("za")) for number in (1, 2, 3))
WEB, PIECE = service(), a_slice([A, B])
OTHER = service("default/other", cluster_ips=(IP("10.96.0.11"),))
OTHER_PIECE = a_slice([A], "default/other-1", service=OTHER.name)
N1 = Node(NodeName("n1"), addresses=(IP("192.0.2.1"),))
SERVED_BY_A = "endpoints: 10.96.0.10 TCP 80 #0 -> 10.244.0.1:8080"
SERVED_BY_ONE = "service_ports: 10.96.0.10 TCP 80 -> goto pick_1"
SERVED_BY_C = "endpoints: 10.96.0.10 TCP 80 #0 -> 10.244.0.3:8080"
PENDING = "kubeproxy_sync_proxy_rules_endpoint_changes_pending"


def test_nothing_is_written_before_the_first_list_of_every_kind() -> None:
    with running() as loop:
        loop.send(Events((Listed(Kind.SERVICE, (Changed(Kind.SERVICE, WEB.name, WEB),)),)))
        loop.send(Events((Listed(Kind.NODE, ()),)))
        loop.put(PIECE)
        loop.until(lambda: bool(loop.loop.published.snapshot.slices))
        assert loop.kernel.calls == []
        assert not loop.loop.health().ready

        loop.send(Events((Listed(Kind.ENDPOINT_SLICE, (Changed(Kind.ENDPOINT_SLICE, PIECE.name, PIECE),)),)))
        loop.until(lambda: loop.loop.health().ready)

        assert loop.kernel.calls == ["read", "install"]
        assert SERVED_BY_A in loop.shown()


def test_an_empty_cluster_gets_its_tables_too() -> None:
    with running() as loop:
        loop.list_all()

        assert loop.kernel.calls == ["read", "install"]
        assert loop.shown() == set()


def test_tables_that_a_former_daemon_left_are_adopted_without_a_write() -> None:
    kernel = KeepingKernel()
    with running(kernel) as former:
        former.list_all(WEB, PIECE)
    kernel.calls.clear()

    with running(kernel) as loop:
        loop.list_all(WEB, PIECE)

    assert kernel.calls == ["read"]


def test_a_change_is_written_and_told() -> None:
    with running() as loop, capture_logs() as logs:
        loop.list_all(WEB, PIECE)

        loop.put(a_slice([B, C]))
        loop.until(lambda: [line["event"] for line in logs].count("sync_done") == 2)
        assert SERVED_BY_C in loop.shown()
        assert metric(PENDING) == 0

    events = [line["event"] for line in logs]
    assert events == ["table_installed", "sync_done", "first_sync_done", "sync_done"]
    assert (logs[-1]["added"], logs[-1]["deleted"], logs[-1]["full"]) == (
        2,
        2,
        False,
    )  # its target, and the pair for hairpin


def test_changes_that_come_while_the_kernel_is_busy_are_written_as_one() -> None:
    with running() as loop:
        loop.list_all(WEB, PIECE)
        loop.kernel.open.clear()
        loop.put(a_slice([A]))
        loop.until(lambda: loop.kernel.calls[-1] == "run")

        for number in range(50):
            loop.put(a_slice([A, B, C][: number % 3 + 1]), service(f"default/other-{number}"))
        loop.kernel.open.set()
        loop.until(lambda: len(loop.commits[-1].snapshot.services) == 51)

        assert loop.kernel.calls.count("run") == 2


@pytest.mark.parametrize(
    "unknown", [pytest.param(False, id="it applied nothing"), pytest.param(True, id="it applied it")]
)
def test_after_a_refusal_the_kernel_is_read_back_and_nothing_is_lost(*, unknown: bool) -> None:
    failures = metric("kubeproxy_sync_proxy_rules_nftables_sync_failures_total", ip_family="IPv4")
    with running() as loop, capture_logs() as logs:
        loop.list_all(WEB, PIECE)
        loop.kernel.errors = [KernelError("no room", unknown=unknown), KernelError("no room")][: 1 if unknown else 2]
        expected = len(loop.kernel.errors)

        loop.put(a_slice([B, C]))
        loop.until(lambda: not loop.kernel.errors and SERVED_BY_C in loop.shown())
        loop.until(lambda: loop.loop.health().healthy and metric(PENDING) == 0)

    refused = [line for line in logs if line["event"] == "sync_failed"]
    assert [line["why"] for line in refused] == ["no room"] * expected
    assert metric("kubeproxy_sync_proxy_rules_nftables_sync_failures_total", ip_family="IPv4") == failures + expected
    assert loop.kernel.calls == ["read", "install", "run", *(["read"] if unknown else ["read", "run"] * 2)]
    assert not loop.loop.published.writing


def test_while_the_kernel_refuses_scrapes_need_not_wait() -> None:
    failures = metric("kubeproxy_sync_proxy_rules_nftables_sync_failures_total", ip_family="IPv4")
    with running() as loop:
        loop.list_all(WEB, PIECE)
        loop.kernel.errors = [KernelError("no room")] * 100

        loop.put(a_slice([B, C]))
        loop.until(
            lambda: metric("kubeproxy_sync_proxy_rules_nftables_sync_failures_total", ip_family="IPv4") > failures
        )

        loop.until(lambda: not loop.loop.published.writing)
        assert loop.kernel.errors


def test_a_refused_installation_is_tried_again() -> None:
    kernel = KeepingKernel()
    kernel.errors = [KernelError("no nf_tables")]
    with running(kernel) as loop:
        loop.list_all(WEB, PIECE)

        assert kernel.calls == ["read", "install"] * 2
        assert SERVED_BY_A in loop.shown()


def test_what_another_program_changed_is_put_right_and_counted_but_not_in_a_hot_loop() -> None:
    changes = metric("closeby_foreign_changes_total")
    with running() as loop, capture_logs() as logs:
        loop.list_all(WEB, PIECE)
        before = loop.shown()
        begun_s = time.monotonic()
        for _ in range(2):
            loop.kernel.held = Installed({}, set())  # in one step: the loop may be reading what an earlier word meant
            loop.send(ForeignChange(), ForeignChange(), ForeignChange())
            loop.until(lambda: loop.shown() == before)

    assert time.monotonic() - begun_s > FOREIGN_GAP_S
    assert loop.kernel.calls.count("run") == 2
    assert metric("closeby_foreign_changes_total") == changes + 6
    assert 2 <= [line["event"] for line in logs].count("foreign_change_seen") <= loop.kernel.calls.count("read")


def test_tables_that_another_program_deleted_are_made_anew() -> None:
    with running() as loop:
        loop.list_all(WEB, PIECE)
        before = loop.shown()
        loop.kernel.held = None

        loop.send(ForeignChange())
        loop.until(lambda: loop.shown() == before)

        assert loop.kernel.calls == ["read", "install"] * 2


def test_an_error_of_ours_is_told_and_counted_and_then_everything_is_done_again() -> None:
    errors = metric("closeby_loop_errors_total")
    broken = service("default/broken", cluster_ips=(IP("no address"),))
    with running() as loop, capture_logs() as logs:
        loop.list_all(WEB, PIECE, N1)

        loop.put(a_slice([B, C]), Node(N1.name, Zone("za"), N1.addresses), broken, OTHER, OTHER_PIECE)
        loop.until(lambda: metric("closeby_loop_errors_total") > errors)
        assert SERVED_BY_A in loop.shown()
        loop.put(service("default/broken", cluster_ips=(IP("10.96.0.99"),)))
        loop.until(lambda: "cluster_ips: 10.96.0.99" in loop.shown())

        assert SERVED_BY_C in loop.shown()
        loop.until(lambda: loop.loop.published.tiers.get(Tier.SAME_ZONE) == 3)
    assert [line["log_level"] for line in logs if line["event"] == "loop_failed"] == ["error"] * int(
        metric("closeby_loop_errors_total") - errors
    )


def test_stop_leaves_the_rules() -> None:
    with running() as loop:
        loop.list_all(WEB, PIECE)

    assert loop.kernel.calls == ["read", "install"]
    assert SERVED_BY_A in loop.shown()


def test_the_hosts_addresses_serve_node_ports_where_the_node_has_none() -> None:
    with running() as loop:
        loop.list_all(service(type="NodePort", ports=(HTTP_NODE_PORT,)))

        loop.send(HostAddresses(frozenset({IP("203.0.113.5")})), HostAddresses(frozenset({IP("203.0.113.5")})))

        loop.until(lambda: len(loop.commits) == 2)  # the call is noted before it is carried out
        assert loop.kernel.calls == ["read", "install", "run"]
        assert loop.kernel.held is not None
        assert "node_addresses: 203.0.113.5" in show_elements(loop.kernel.held.elements, of_the_node=True)


def test_the_source_is_asked_who_owns_our_pod() -> None:
    agent = service(traffic_distribution=TrafficDistribution.PREFER_CLOSE)
    pod = slice_endpoint("10.244.0.1", node=NodeName("n1"), pod="default/agent-abcde")
    with running() as loop:
        loop.list_all(agent, a_slice([pod]))

        loop.put(daemon_set(desired=1))

        loop.until(lambda: loop.source.asked == ["default/agent-abcde"])


AGENT = service(traffic_distribution=TrafficDistribution.PREFER_CLOSE)
AGENT_SLICE = a_slice(
    [
        slice_endpoint("10.244.0.1", node=NodeName("n1"), pod="default/agent-abcde"),
        slice_endpoint("10.244.1.1", node=NodeName("n2"), pod="default/agent-fghij"),
    ]
)
AGENT_POD = Pod(PodName("default/agent-abcde"), daemon_set=daemon_set().name)


def test_after_a_restart_same_node_traffic_stays_while_the_owner_of_our_pod_is_asked_for() -> None:
    kernel = KeepingKernel()
    with running(kernel) as former:
        former.put(daemon_set(desired=2), AGENT_POD)
        former.list_all(AGENT, AGENT_SLICE)
        assert SERVED_BY_ONE in former.shown()
    kernel.calls.clear()

    with running(kernel) as loop:
        loop.put(daemon_set(desired=2))
        loop.send(*first_lists(AGENT, AGENT_SLICE))
        loop.until(lambda: loop.source.asked == ["default/agent-abcde"])
        loop.put(AGENT_POD)
        loop.until(lambda: loop.loop.health().ready)

    assert "run" not in kernel.calls


def test_an_owner_that_nobody_tells_keeps_the_first_write_for_two_seconds_only() -> None:
    with running(owners_s=Pacing().owners_s) as loop:
        loop.put(daemon_set(desired=2))
        started_s = time.monotonic()
        loop.list_all(AGENT, AGENT_SLICE)

        assert time.monotonic() - started_s >= Pacing().owners_s
        assert "service_ports: 10.96.0.10 TCP 80 -> goto pick_2" in loop.shown()


def test_observers_hear_of_each_commit_and_what_it_touched() -> None:
    with running() as loop:
        loop.list_all(WEB, PIECE)
        loop.kernel.errors = [KernelError("no room")]

        loop.put(OTHER, OTHER_PIECE)
        loop.until(lambda: len(loop.commits) == 2)

    first, second = loop.commits
    assert first.touched is None
    assert second.touched is not None
    assert second.touched.services == {OTHER.name}
    assert second.snapshot.services.keys() == {WEB.name, OTHER.name}


def test_observers_may_hear_of_each_write_before_the_kernel_does() -> None:
    with running() as loop:
        loop.list_all(WEB, PIECE)
        loop.put(a_slice([B, C]))
        loop.until(lambda: len(loop.commits) == 2)  # the lists, and the change
        loop.kernel.errors = [KernelError("busy")]
        loop.put(a_slice([C]))
        loop.until(lambda: len(loop.commits) == 3)  # and one that is refused first

    assert [called for _change, called in loop.told] == ["read", "install", "run", "read"]
    assert [change for change, _called in loop.told[:2]] == [commit.change for commit in loop.commits[:2]]
    assert loop.told[2:] == [(loop.commits[2].change, "run"), (loop.commits[2].change, "read")]


def test_a_commit_says_which_addresses_node_ports_answer_on() -> None:
    with running() as loop:
        loop.list_all(Node(NodeName("n1"), addresses=(IP("192.0.2.1"), IP("192.0.2.2"), IP("fd00::1"))))

    assert loop.commits[-1].node_addresses == {"192.0.2.1", "fd00::1"}
