"""The demo's folder must say what the cast says, in the words of the API."""

from collections import Counter

import pytest

from e2e.demo.acts import ACTS
from e2e.demo.cast import Cast
from e2e.demo.manifests import file_of, render_folder
from e2e.demo.shop import CAST, NODES, PODS, pod_spec
from e2e.world.hosts import Node, Pod, plan_node, plan_pod
from endpointslice.snapshot import EMPTY, Snapshot, apply_events
from endpointslice.types import ServiceName
from proxy.sources.documents import parse_manifest
from proxy.sources.folder import list_objects, merge_manifests


def addresses() -> tuple[dict[str, Node], dict[str, Pod]]:
    nodes = {spec.name: plan_node(spec, spec.name, number) for number, spec in enumerate(NODES, 1)}
    numbers: Counter[str] = Counter()
    pods = {}
    for spec in (*PODS, pod_spec("logs", "west-2")):
        numbers[spec.node] += 1
        pods[spec.name] = plan_pod(spec, spec.name, nodes[spec.node], numbers[spec.node])
    return nodes, pods


def read(files: dict[str, str]) -> Snapshot:
    manifests = [parse_manifest(name, text.encode()) for name, text in files.items()]
    return apply_events(EMPTY, list_objects(merge_manifests(manifests)))[0]


def test_closeby_reads_the_whole_cast_and_skips_nothing() -> None:
    snapshot = read(render_folder(CAST, *addresses()))

    assert snapshot.skipped == {}
    assert set(snapshot.nodes) == {node.name for node in NODES}
    assert set(snapshot.services) == {offer.name for offer in CAST.offers}
    assert set(snapshot.daemon_sets) == {"kube-system/dns", "infra/logs"}
    for offer in CAST.offers:
        slices = snapshot.slices.get(ServiceName(offer.name), {}).values()
        assert sum(len(part.endpoints) for part in slices) == len(offer.members) * len(offer.cluster_ips)


@pytest.mark.parametrize("number", range(len(ACTS)), ids=[act.title for act in ACTS])
def test_each_act_changes_files_of_the_services_that_its_traffic_goes_to(number: int) -> None:
    before: Cast = CAST
    for act in ACTS[:number]:
        before = act.edit(before)
    old = render_folder(before, *addresses())
    new = render_folder(ACTS[number].edit(before), *addresses())

    changed = {name for name in new if new[name] != old[name]}

    assert changed >= {file_of(service) for service, _ in ACTS[number].streams}
    assert read(new).skipped == {}
