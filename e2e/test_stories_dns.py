"""As an administrator I put a CoreDNS on every node by docs/dns.md: pods use their own, and lose nothing with it."""

import pytest

from e2e.console import open_console
from e2e.kind.cluster import Cluster
from e2e.kind.steps import steps_on
from e2e.stories.clients import PodClients
from e2e.stories.dns.command import CLIENT_IMAGE
from e2e.stories.dns.coredns import NodeDns
from e2e.stories.dns.stages import STAGES, Pace, Scene
from e2e.stories.dns.telling import await_own_nodes, tell

pytestmark = [pytest.mark.kind, pytest.mark.timeout(900, func_only=True)]

PACE = Pace(steady_s=10.0, held_s=5.0, settled_s=3.0)
TOLD = {"steady", "updated", "deleted", "unready"}


def test_pods_are_answered_by_their_own_nodes_coredns_and_lose_nothing_when_it_goes(kind_cluster: Cluster) -> None:
    nodes = [node.name for node in kind_cluster.nodes()]
    node = next(name for name in nodes if name != kind_cluster.control_plane)
    stages = [stage for stage in STAGES if stage.name in TOLD]
    steps = steps_on(open_console())
    with NodeDns(kind_cluster) as dns, PodClients(kind_cluster, nodes, image=CLIENT_IMAGE) as clients:
        dns.distribute("PreferClose")
        await_own_nodes(dns, clients)
        told = tell(Scene(kind_cluster, dns, node, PACE), stages, clients, steps)
        rows = {stage.name: row for stage, row in zip(stages, told, strict=True)}

    assert {name: row.faults for name, row in rows.items() if row.failed} == {}
    assert rows["steady"].own == rows["steady"].lookups > 500
    for name in ("deleted", "unready"):
        assert 0 < rows[name].own < rows[name].lookups
        assert rows[name].untouched_own == rows[name].untouched > 0
    assert rows["updated"].own == rows["updated"].lookups
