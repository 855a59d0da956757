"""Clients of a real cluster don't notice that closeby is updated, or dies, on every node."""

from collections.abc import Iterator

import pytest

from e2e.console import open_console
from e2e.kind.cluster import Cluster
from e2e.kind.config import Proxy
from e2e.kind.steps import steps_on
from e2e.stories.clients import PodClients
from e2e.stories.shop import Shop
from e2e.stories.update import KILL, WITH_SERVERS, Update, measure

pytestmark = [pytest.mark.kind, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def shop(kind_cluster: Cluster) -> Iterator[Shop]:
    """Servers and Services on the shared cluster."""
    shop = Shop(kind_cluster, Proxy.CLOSEBY, steps_on(open_console()))
    try:
        shop.open()
        yield shop
    finally:
        shop.close()


@pytest.fixture(scope="module")
def clients(shop: Shop) -> Iterator[PodClients]:
    """One on each node."""
    with shop.clients(shop.nodes) as clients:
        yield clients


@pytest.mark.parametrize("update", [WITH_SERVERS, KILL], ids=lambda update: update.name)
def test_nobody_notices(shop: Shop, clients: PodClients, update: Update) -> None:
    told = measure(shop, clients, update)

    assert told.complaints() == []
    assert all(noticed.attempts for noticed in told.new.values())
