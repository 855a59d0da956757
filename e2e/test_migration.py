"""A node moves from kube-proxy to closeby and back under load, and no user notices."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster.kernel import list_tables, nft
from e2e.migration.orders import ORDERS, Order, measure, prepare
from e2e.migration.rig import Mode, Rig, run_rig

pytestmark = pytest.mark.e2e

needs_iptables = pytest.mark.skipif(not shutil.which("iptables-nft-save"), reason="no iptables on this host")
ADVISED = [order for order in ORDERS if not order.loses]
OURS = {"ip closeby", "ip6 closeby"}
THEIRS = {"ip kube-proxy", "ip6 kube-proxy"}


@pytest.fixture(scope="module")
def rig(kube_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Two nodes and an API server."""
    with run_rig(kube_binary, tmp_path_factory.mktemp("move")) as running:
        yield running


def test_the_cleanup_after_kube_proxy_leaves_our_tables_alone(rig: Rig) -> None:
    """The real kube-proxy's tables, on the real kernel."""
    prepare(rig, Mode.NFTABLES, closeby=False)
    rig.start_closeby()
    before = list_tables(rig.netns)
    assert before >= OURS | THEIRS
    refused = rig.closeby.run("cleanup", "--kube-proxy")
    rig.stop_peer()

    ended = rig.clean_up_peer()

    assert (refused.code, "kube-proxy runs here (process" in refused.error) == (1, True)
    assert (ended.output, ended.error) == ("Removed table ip kube-proxy\nRemoved table ip6 kube-proxy\n", "")
    assert list_tables(rig.netns) == before - THEIRS
    assert rig.clean_up_peer().output == "kube-proxy left nothing here.\n"


@needs_iptables
def test_the_cleanup_after_kube_proxys_iptables_mode_leaves_only_what_the_kubelet_shares(rig: Rig) -> None:
    """KUBE-FIREWALL is both programs', and guards 127.0.0.0/8 while net.ipv4.conf.all.route_localnet is set."""
    prepare(rig, Mode.IPTABLES, closeby=False)
    assert "chain KUBE-SERVICES" in nft(rig.netns, "list", "table", "ip", "nat")
    rig.stop_peer()

    output = rig.clean_up_peer().output

    assert "iptables-nft: " in output
    left = set(re.findall(r"KUBE-[A-Z0-9-]+", nft(rig.netns, "list", "ruleset")))
    assert left <= {"KUBE-FIREWALL"}


@pytest.mark.parametrize("mode", [Mode.NFTABLES, pytest.param(Mode.IPTABLES, marks=needs_iptables)])
@pytest.mark.parametrize("order", ADVISED, ids=lambda order: order.name)
def test_the_orders_that_we_advise_lose_nothing(rig: Rig, order: Order, mode: Mode) -> None:
    cost = measure(rig, order, mode)

    assert cost.attempts > 100
    assert cost.flows == 28
    assert cost.total == 0, cost


def test_an_order_that_leaves_a_gap_is_counted_as_such(rig: Rig) -> None:
    """So that the zeros above mean something."""
    [order] = [order for order in ORDERS if order.loses and order.to_closeby]

    cost = measure(rig, order, Mode.NFTABLES)

    assert sum(cost.failed.values()) > 0
