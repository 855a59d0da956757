"""The API server as a source, against a real one: what a healthy server sends, and what an unhealthy one does."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from e2e.controlplane.api import Api, Object
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.objects import add_namespace, add_ready_node, add_running_pod, pod, service
from e2e.controlplane.waiting import wait_for
from endpointslice.decode import Changed, Listed
from endpointslice.snapshot import EMPTY, Snapshot, apply_events
from endpointslice.types import DaemonSetName, Kind, NodeName, PodName, ServiceName
from proxy.sources import Source
from proxy.sources.apiserver import ApiServerSource
from proxy.sources.credentials import load_kubeconfig
from proxy.sources.transport import ApiServer, Stream
from proxy.sources.watch import PATIENT, KindWatch, Patience, Resource

pytestmark = pytest.mark.e2e

NAMESPACE = "source"
WEB = ServiceName("source/web")
OUTAGE_S = 5.0


class Listener:
    """What a source posted, as the loop would have it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # several threads post
        self.snapshot: Snapshot = EMPTY
        self.listed: list[Kind] = []
        self.smallest: dict[Kind, int] = {}  # objects of the shortest list

    def __call__(self, batch: Sequence[Changed | Listed]) -> None:
        """As the loop's inbox."""
        with self._lock:
            self.snapshot, _ = apply_events(self.snapshot, batch)
            for event in batch:
                if isinstance(event, Listed):
                    self.listed.append(event.kind)
                    self.smallest[event.kind] = min(self.smallest.get(event.kind, 1 << 30), len(event.objects))

    def port_of(self, name: ServiceName) -> int | None:
        """The Service's first port; None if there is no such Service."""
        found = self.snapshot.services.get(name)
        return found.ports[0].port if found and found.ports else None


class RecordingServer(ApiServer):
    """An API server whose requests are remembered."""

    def __init__(self, kubeconfig: Path) -> None:
        super().__init__(lambda: load_kubeconfig(kubeconfig))
        self.queries: list[Mapping[str, str]] = []

    def get(self, path: str, query: Mapping[str, str]) -> bytes:
        """As ApiServer."""
        self.queries.append(query)
        return super().get(path, query)

    def open_stream(self, path: str, query: Mapping[str, str], read_timeout_s: float) -> Stream:
        """As ApiServer."""
        self.queries.append(query)
        return super().open_stream(path, query, read_timeout_s)


Start = Callable[..., tuple[Source, Listener]]


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane) -> Api:
    add_namespace(control_plane.api, NAMESPACE)
    return control_plane.api


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a source with a kubeconfig, as node source-1; it ends with the test."""
    started: list[Source] = []

    def start(kubeconfig: Path, patience: Patience = PATIENT) -> tuple[Source, Listener]:
        listener = Listener()
        source = ApiServerSource(ApiServer(lambda: load_kubeconfig(kubeconfig)), NodeName("source-1"), patience)
        source.start(listener)
        started.append(source)
        return source, listener

    yield start
    for source in started:
        source.stop()


def is_connected(source: Source) -> bool:
    return all(status.connected for status in source.status().values())


def set_port(api: Api, port: int) -> None:
    api.apply(service(WEB, {"http": port}))


def test_everything_that_matters_arrives_and_nothing_else(control_plane: ControlPlane, api: Api, start: Start) -> None:
    set_port(api, 80)
    api.apply(service("source/headless", {"http": 80}, clusterIP="None"))
    for name in ("source-1", "source-2"):
        add_ready_node(api, name, "zone-a")
    with capture_logs() as logs:
        source, listener = start(control_plane.admin_kubeconfig)
        wait_for(lambda: is_connected(source), "every kind is watched")
        snapshot = listener.snapshot

        assert WEB in snapshot.services
        assert ServiceName("source/headless") not in snapshot.services
        assert set(snapshot.nodes) == {"source-1"}
        assert snapshot.nodes[NodeName("source-1")].zone == "zone-a"
        assert "kubernetes" in snapshot.service_cidrs

        add_running_pod(api, pod("source/web-1", node_name="source-1", labels={"app": "web"}), "10.244.9.1")
        wait_for(
            lambda: (
                [e.ip for s in listener.snapshot.slices.get(WEB, {}).values() for e in s.endpoints] == ["10.244.9.1"]
            ),
            "the controller's slice arrives",
        )

    assert sorted(listener.listed) == sorted(source.kinds)
    assert {log["event"] for log in logs} == {"kind_listed"}  # so the server took every selector


def test_the_proxy_name_label_hides_a_service_at_once(control_plane: ControlPlane, api: Api, start: Start) -> None:
    set_port(api, 80)
    _, listener = start(control_plane.admin_kubeconfig)
    wait_for(lambda: WEB in listener.snapshot.services, "the Service is listed")

    label = "service.kubernetes.io/service-proxy-name"
    api.patch("Service", WEB, {"metadata": {"labels": {label: "other"}}})
    wait_for(lambda: WEB not in listener.snapshot.services, "it is gone for us")
    api.patch("Service", WEB, {"metadata": {"labels": {label: None}}})
    wait_for(lambda: WEB in listener.snapshot.services, "it is back")


def test_a_list_of_several_pages_is_whole(control_plane: ControlPlane, api: Api) -> None:
    for number in range(12):
        api.apply(_slice(number))
    server = RecordingServer(control_plane.admin_kubeconfig)
    listener = Listener()
    slices = Resource(
        Kind.ENDPOINT_SLICE, "/apis/discovery.k8s.io/v1/endpointslices", label_selector="paged", page_limit=5
    )
    watch = KindWatch(server, slices, listener)
    watch.start()
    wait_for(lambda: watch.status.connected, "slices are listed")
    watch.stop()

    assert len(listener.snapshot.slices[ServiceName("source/paged")]) == 12
    assert len([query for query in server.queries if "limit" in query]) == 3
    api.request("DELETE", "/apis/discovery.k8s.io/v1/namespaces/source/endpointslices?labelSelector=paged")


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


def test_bookmarks_move_the_version_while_nothing_of_ours_changes(control_plane: ControlPlane, api: Api) -> None:
    """The server sends one two seconds before a watch ends, and one a minute, if there is a newer version."""
    server = RecordingServer(control_plane.admin_kubeconfig)
    listener = Listener()
    nothing = Resource(Kind.SERVICE, "/api/v1/services", label_selector="no-such-label")
    watch = KindWatch(server, nothing, listener, Patience(watch_s=(6, 6)))
    watch.start()
    wait_for(lambda: watch.status.connected, "Services are watched")
    set_port(api, 84)
    set_port(api, 85)

    def versions() -> list[int]:
        return [int(query["resourceVersion"]) for query in server.queries if "watch" in query]

    wait_for(lambda: len(versions()) > 1, "the watch is resumed")
    watch.stop()

    assert versions()[1] > versions()[0]
    assert listener.snapshot == EMPTY
    assert listener.listed == [Kind.SERVICE]


def test_an_expired_version_is_listed_again_without_a_gap(control_plane: ControlPlane, api: Api, start: Start) -> None:
    set_port(api, 80)
    source, listener = start(control_plane.admin_kubeconfig)
    wait_for(lambda: is_connected(source), "every kind is watched")
    before = dict(listener.smallest)
    add_namespace(api, "source-later")  # nothing that we watch: now our versions are older than the last but one

    with capture_logs() as logs:
        control_plane.compact()
        wait_for(lambda: is_connected(source), "every kind is watched again")
        set_port(api, 81)
        wait_for(lambda: listener.port_of(WEB) == 81, "changes arrive again")

    assert "watch_expired" in {log["event"] for log in logs}
    assert listener.listed.count(Kind.SERVICE) == 2
    assert listener.smallest[Kind.SERVICE] >= before[Kind.SERVICE]


def test_an_outage_empties_nothing_and_ends_by_itself(control_plane: ControlPlane, api: Api, start: Start) -> None:
    set_port(api, 80)
    source, listener = start(control_plane.admin_kubeconfig)
    wait_for(lambda: is_connected(source), "every kind is watched")
    before = listener.snapshot

    with capture_logs() as logs:
        control_plane.stop_apiserver()
        time.sleep(OUTAGE_S)
        assert not any(status.connected for status in source.status().values())
        assert all(status.complete for status in source.status().values())
        assert listener.snapshot is before

        control_plane.start_apiserver()
        set_port(api, 82)
        wait_for(lambda: listener.port_of(WEB) == 82, "changes arrive again", timeout_s=40)
        wait_for(lambda: is_connected(source), "every kind is watched again", timeout_s=40)

    assert WEB in before.services
    lost = [log["kind"] for log in logs if log["event"] == "watch_lost"]
    assert len(lost) <= 2 * len(source.kinds)  # told once each, and once more if the server came up refusing


def test_a_server_that_comes_up_after_us_is_found(control_plane: ControlPlane, api: Api, start: Start) -> None:
    set_port(api, 80)
    control_plane.stop_apiserver()
    try:
        source, listener = start(control_plane.admin_kubeconfig)
        time.sleep(1)
        assert listener.listed == []
        assert not any(status.complete for status in source.status().values())
    finally:
        control_plane.start_apiserver()

    wait_for(lambda: set(listener.listed) == source.kinds, "every kind is listed", timeout_s=40)
    assert listener.port_of(WEB) == 80


@pytest.fixture
def service_account(control_plane: ControlPlane, api: Api, tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig of a service account that may read Services, slices and Nodes, its token in a file beside it."""
    rules = [
        {"apiGroups": [""], "resources": ["services", "nodes"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "agent", "namespace": NAMESPACE}})
    _allow(api, "source-agent", rules)
    kubeconfig = control_plane.kubeconfig(tmp_path / "config", "none")
    kubeconfig.write_text(
        kubeconfig.read_text()
        .replace("token: none", "tokenFile: token")
        .replace('"token": "none"', '"tokenFile": "token"')
    )
    assert "tokenFile" in kubeconfig.read_text()
    (tmp_path / "token").write_text(control_plane.service_account_token(NAMESPACE, "agent"))
    yield kubeconfig
    api.delete("ClusterRoleBinding", "source-agent")
    api.delete("ClusterRole", "source-agent")
    api.delete("ServiceAccount", f"{NAMESPACE}/agent")


def _allow(api: Api, name: str, rules: list[Object]) -> None:
    group = "rbac.authorization.k8s.io"
    api.apply({"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})
    api.apply(
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "agent", "namespace": NAMESPACE}],
        }
    )


def test_kinds_that_rbac_refuses_count_as_empty_until_it_allows_them(
    api: Api, service_account: Path, start: Start
) -> None:
    api.apply(_daemon_set("agent"))
    quick = Patience(delay=lambda _: 0.2)
    with capture_logs() as logs:
        source, listener = start(service_account, quick)
        wait_for(lambda: set(listener.listed) == source.kinds, "every kind is complete")
        assert listener.snapshot.daemon_sets == {}
        assert listener.snapshot.service_cidrs == {}
        refused = {log["kind"]: log["needs"] for log in logs if log["event"] == "kind_refused"}
        assert refused.keys() == {Kind.DAEMON_SET, Kind.SERVICE_CIDR}
        assert "daemonsets in apps" in refused[Kind.DAEMON_SET]

        rules = [{"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["list", "watch"]}]
        _allow(api, "source-more", rules)
        wait_for(lambda: DaemonSetName("source/agent") in listener.snapshot.daemon_sets, "DaemonSets arrive")
    api.delete("ClusterRoleBinding", "source-more")
    api.delete("ClusterRole", "source-more")
    api.delete("DaemonSet", "source/agent")


def _daemon_set(name: str) -> Object:
    labels = {"app": name}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"nodeSelector": {"nowhere": ""}, "containers": [{"name": "main", "image": "none"}]},
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def test_a_rotated_token_is_taken_up(
    control_plane: ControlPlane, api: Api, service_account: Path, start: Start
) -> None:
    """The old token dies with its service account; the next connection meets a 401 and reads the file again."""
    set_port(api, 80)
    source, listener = start(service_account, Patience(delay=lambda _: 0.2, watch_s=(3, 3)))
    wait_for(lambda: listener.port_of(WEB) == 80, "Services are listed")

    api.delete("ServiceAccount", f"{NAMESPACE}/agent")
    wait_for(
        lambda: source.status()[Kind.SERVICE].error.startswith("401"), "the old token is refused", timeout_s=30
    )  # a watch ends after 3 s; the server remembers a token for 10 s
    assert listener.port_of(WEB) == 80
    api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "agent", "namespace": NAMESPACE}})
    token = control_plane.service_account_token(NAMESPACE, "agent")
    service_account.with_name("token").write_text(token)

    wait_for(lambda: source.status()[Kind.SERVICE].connected, "the new token is taken", timeout_s=30)
    set_port(api, 83)
    wait_for(lambda: listener.port_of(WEB) == 83, "changes arrive again", timeout_s=30)


def test_the_owner_of_a_pod_comes_on_request(control_plane: ControlPlane, api: Api, start: Start) -> None:
    owned = pod("source/owned", node_name="source-1", labels={"app": "owned"})
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1", "controller": True}
    owned["metadata"]["ownerReferences"] = [owner]
    api.apply(owned)
    source, listener = start(control_plane.admin_kubeconfig)
    name = PodName("source/owned")

    source.request_pod(name, "")
    wait_for(lambda: name in listener.snapshot.pods, "the Pod arrives")

    assert listener.snapshot.pods[name].daemon_set == "source/agent"
    source.request_pod(PodName("source/none"), "")
    wait_for(lambda: is_connected(source), "every kind is watched")
    assert PodName("source/none") not in listener.snapshot.pods
