"""The monitor hears others, not us."""

from threading import Thread

import pytest

from endpointslice.types import Family
from proxy.kernel.change import Change, Installed, MapChange
from proxy.kernel.monitor import Monitor, Seen
from proxy.kernel.netlink import NftKernel
from proxy.kernel.ruleset import SetId, SetName
from tests.netns.kernel_space import Space

pytestmark = pytest.mark.netns

PATIENCE_S = 60.0
CLUSTER_IPS = SetId(Family.IPV4, SetName.CLUSTER_IPS)
MANY = {number.to_bytes(4): b"" for number in range(60_000)}


@pytest.fixture
def monitor(space: Space, kernel: NftKernel, installed: Installed) -> Monitor:
    assert installed
    return space.open_monitor(kernel)


def test_what_we_do_is_not_reported(kernel: NftKernel, installed: Installed, monitor: Monitor) -> None:
    kernel.run(Change({CLUSTER_IPS: MapChange({}, MANY)}), installed)
    kernel.run(Change({CLUSTER_IPS: MapChange(MANY, {})}), installed)
    kernel.remove()
    kernel.install({})

    assert monitor.wait(0.2) is Seen.NOTHING


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param("add element ip closeby cluster_ips { 10.96.0.1 }", id="an element added"),
        pytest.param("add rule ip6 closeby refuse accept", id="a rule added"),
        pytest.param("flush chain ip closeby postrouting", id="a chain flushed"),
        pytest.param("delete table ip closeby", id="the table deleted"),
        pytest.param("flush ruleset", id="everything deleted"),
        pytest.param("add chain ip6 closeby mine", id="a chain added"),
    ],
)
def test_a_foreign_edit_is_seen_at_once(space: Space, monitor: Monitor, edit: str) -> None:
    space.nft(edit)

    assert monitor.wait(0) is Seen.OURS_CHANGED


def test_a_foreign_edit_wakes_a_wait_that_began_before_it(space: Space, monitor: Monitor) -> None:
    seen: list[Seen] = []
    waiting = Thread(target=lambda: seen.append(monitor.wait(2 * PATIENCE_S)))
    waiting.start()

    space.nft("add table ip other\nadd element ip closeby cluster_ips { 10.96.0.1 }")

    waiting.join(PATIENCE_S)
    assert seen == [Seen.OURS_CHANGED]


def test_an_edit_is_reported_once(space: Space, monitor: Monitor) -> None:
    space.nft("add element ip closeby cluster_ips { 10.96.0.1 }")

    assert [monitor.wait(1), monitor.wait(0.1)] == [Seen.OURS_CHANGED, Seen.NOTHING]


@pytest.mark.parametrize(
    "edit", ["add table ip other", "add table inet closeby\nadd chain inet closeby x", "add table ip closeby2"]
)
def test_others_tables_are_none_of_our_business(space: Space, monitor: Monitor, edit: str) -> None:
    space.nft(edit)

    assert monitor.wait(0.2) is Seen.NOTHING


def test_a_family_that_was_not_asked_for_is_not_reported(space: Space, kernel: NftKernel, installed: Installed) -> None:
    assert installed
    monitor = space.open_monitor(kernel, [Family.IPV4])
    space.nft("add rule ip6 closeby refuse accept")

    assert monitor.wait(0.2) is Seen.NOTHING


def test_lost_notifications_are_unknown_and_then_it_hears_again(space: Space, monitor: Monitor) -> None:
    """Another writer, whose 60,000 elements overflow our socket many times over."""
    other = space.open_kernel()
    installed = other.read()
    assert installed is not None
    for _time in range(4):
        other.run(Change({CLUSTER_IPS: MapChange({}, MANY)}), installed)
        other.run(Change({CLUSTER_IPS: MapChange(MANY, {})}), installed)

    assert monitor.wait(1) is Seen.UNKNOWN
    assert monitor.wait(0.1) is Seen.NOTHING
    space.nft("add element ip closeby cluster_ips { 10.96.0.1 }")
    assert monitor.wait(1) is Seen.OURS_CHANGED
