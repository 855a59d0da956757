"""The Service whose address closeby moves."""

from pathlib import Path

import yaml

from e2e.lan.members import VIPS, plan_nodes
from e2e.lan.speakers.service import render_service, write_service
from endpointslice.snapshot import EMPTY, apply_events
from proxy.sources.manifests import load_folder


def test_every_node_is_an_endpoint_of_both_families() -> None:
    _, *slices = yaml.safe_load_all(render_service(plan_nodes("x-", 3)))

    assert [[one["nodeName"] for one in piece["endpoints"]] for piece in slices] == [["node-1", "node-2", "node-3"]] * 2
    assert [piece["endpoints"][0]["addresses"] for piece in slices] == [["172.31.0.11"], ["fd00:172:31::b"]]


def test_closeby_reads_it_without_a_complaint_with_both_vips(tmp_path: Path) -> None:
    write_service(tmp_path / "manifests")

    read = load_folder(tmp_path / "manifests")
    snapshot, _ = apply_events(EMPTY, read)

    assert [skipped for changed in read for skipped in changed.skipped] == []
    assert [set(service.load_balancer_ips) for service in snapshot.services.values()] == [set(VIPS.values())]
    assert [len(pieces) for pieces in snapshot.slices.values()] == [2]
