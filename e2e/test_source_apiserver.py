"""The API server as a source, against a real one: what a healthy server sends."""

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from e2e.controlplane.api import Api, Object
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.objects import add_ready_node, add_running_pod, pod, service
from e2e.controlplane.waiting import wait_for
from e2e.listener import NAMESPACE, WEB, Listener, RecordingServer, StartSource, is_connected, set_port
from endpointslice.snapshot import EMPTY
from endpointslice.types import Kind, NodeName, PodName, ServiceName
from proxy.sources.sink import EventSink
from proxy.sources.watch import KindWatch, Patience, Resource

pytestmark = pytest.mark.e2e


@pytest.fixture
def two_nodes(source_api: Api) -> Iterator[None]:
    """Nodes are everybody's: others count them."""
    names = ("source-1", "source-2")
    for name in names:
        add_ready_node(source_api, name, "zone-a")
    yield
    for name in names:
        source_api.delete("Node", name)


@pytest.mark.usefixtures("two_nodes")
def test_everything_that_matters_arrives_and_nothing_else(
    control_plane: ControlPlane, source_api: Api, start_source: StartSource
) -> None:
    set_port(source_api, 80)
    source_api.apply(service("source/headless", {"http": 80}, clusterIP="None"))
    with capture_logs() as logs:
        source, listener = start_source(control_plane.admin_kubeconfig)
        wait_for(lambda: is_connected(source), "every kind is watched")
        snapshot = listener.snapshot

        assert WEB in snapshot.services
        assert ServiceName("source/headless") not in snapshot.services
        assert set(snapshot.nodes) == {"source-1"}
        assert snapshot.nodes[NodeName("source-1")].zone == "zone-a"
        wait_for(lambda: "kubernetes" in listener.snapshot.service_cidrs, "the API server's own range arrives")

        add_running_pod(source_api, pod("source/web-1", node_name="source-1", labels={"app": "web"}), "10.244.9.1")
        wait_for(
            lambda: (
                [e.ip for s in listener.snapshot.slices.get(WEB, {}).values() for e in s.endpoints] == ["10.244.9.1"]
            ),
            "the controller's slice arrives",
            timeout_s=60,  # it waits long after an outage, if another test made one
        )

    assert sorted(listener.listed) == sorted(source.kinds)
    assert {log["event"] for log in logs} == {"kind_listed"}  # so the server took every selector


def test_the_proxy_name_label_hides_a_service_at_once(
    control_plane: ControlPlane, source_api: Api, start_source: StartSource
) -> None:
    set_port(source_api, 80)
    _, listener = start_source(control_plane.admin_kubeconfig)
    wait_for(lambda: WEB in listener.snapshot.services, "the Service is listed")

    label = "service.kubernetes.io/service-proxy-name"
    source_api.patch("Service", WEB, {"metadata": {"labels": {label: "other"}}})
    wait_for(lambda: WEB not in listener.snapshot.services, "it is gone for us")
    source_api.patch("Service", WEB, {"metadata": {"labels": {label: None}}})
    wait_for(lambda: WEB in listener.snapshot.services, "it is back")


def test_a_list_of_several_pages_is_whole(control_plane: ControlPlane, source_api: Api) -> None:
    for number in range(12):
        source_api.apply(_slice(number))
    server = RecordingServer(control_plane.admin_kubeconfig)
    listener = Listener()
    slices = Resource(
        Kind.ENDPOINT_SLICE, "/apis/discovery.k8s.io/v1/endpointslices", label_selector="paged", page_limit=5
    )
    watch = KindWatch(server, slices, EventSink(Kind.ENDPOINT_SLICE, listener))
    watch.start()
    wait_for(lambda: watch.status.connected, "slices are listed")
    watch.stop()

    assert len(listener.snapshot.slices[ServiceName("source/paged")]) == 12
    assert len([query for query in server.queries if "limit" in query]) == 3
    source_api.request("DELETE", "/apis/discovery.k8s.io/v1/namespaces/source/endpointslices?labelSelector=paged")


def _slice(number: int) -> Object:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"paged-{number}",
            "namespace": NAMESPACE,
            "labels": {"kubernetes.io/service-name": "paged", "paged": ""},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.244.9.9"]}],
    }


def test_bookmarks_move_the_version_while_nothing_of_ours_changes(control_plane: ControlPlane, source_api: Api) -> None:
    """The server sends one two seconds before a watch ends, and one a minute, if there is a newer version."""
    server = RecordingServer(control_plane.admin_kubeconfig)
    listener = Listener()
    nothing = Resource(Kind.SERVICE, "/api/v1/services", label_selector="no-such-label")
    watch = KindWatch(server, nothing, EventSink(Kind.SERVICE, listener), Patience(watch_s=(6, 6)))
    watch.start()
    wait_for(lambda: watch.status.connected, "Services are watched")
    set_port(source_api, 84)
    set_port(source_api, 85)

    def versions() -> list[int]:
        return [int(query["resourceVersion"]) for query in server.queries if "watch" in query]

    wait_for(lambda: versions()[-1] > versions()[0], "a watch is resumed from a newer version")
    watch.stop()

    assert listener.snapshot == EMPTY
    assert listener.listed == [Kind.SERVICE]


def test_the_owner_of_a_pod_comes_on_request(
    control_plane: ControlPlane, source_api: Api, start_source: StartSource
) -> None:
    owned = pod("source/owned", node_name="source-1", labels={"app": "owned"})
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1", "controller": True}
    owned["metadata"]["ownerReferences"] = [owner]
    source_api.apply(owned)
    source, listener = start_source(control_plane.admin_kubeconfig)
    name = PodName("source/owned")

    source.request_pod(name, "")
    wait_for(lambda: name in listener.snapshot.pods, "the Pod arrives")

    assert listener.snapshot.pods[name].daemon_set == "source/agent"
    source.request_pod(PodName("source/none"), "")
    wait_for(lambda: is_connected(source), "every kind is watched")
    assert PodName("source/none") not in listener.snapshot.pods
