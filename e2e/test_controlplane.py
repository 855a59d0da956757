"""The control plane is a real one: its controllers decide, its data survives an outage, its RBAC refuses."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.controlplane.api import Api, ApiError, Object, UnreachableError
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.objects import (
    add_namespace,
    add_ready_node,
    add_running_pod,
    pod,
    pod_status,
    service,
)
from e2e.controlplane.waiting import wait_for

pytestmark = pytest.mark.e2e

NODES = {"cp-a1": "zone-a", "cp-a2": "zone-a", "cp-b1": "zone-b", "cp-b2": "zone-b"}


@pytest.fixture(scope="module")
def shop(control_plane: ControlPlane) -> Iterator[Api]:
    """Four Ready nodes in two zones and a namespace with a running pod of app=web on each."""
    api = control_plane.api
    add_namespace(api, "shop")
    for index, (name, zone) in enumerate(NODES.items(), start=1):
        add_ready_node(api, name, zone)
        web = pod(f"shop/web-{index}", node_name=name, labels={"app": "web", "tier": "front"})
        add_running_pod(api, web, f"10.244.{index}.10", f"fd00:10:244:{index}::10")
    yield api
    for name in NODES:
        api.delete("Node", name)


def slices_of(api: Api, name: str) -> list[Object]:
    return api.items("EndpointSlice", "shop", selector=f"kubernetes.io/service-name={name}")


def hints_by_node(api: Api, name: str, kind: str) -> dict[str, list[str]]:
    """Node of each v4 endpoint -> names its hints give; {} until all four endpoints have one."""
    found = {
        endpoint["nodeName"]: [hint["name"] for hint in endpoint.get("hints", {}).get(kind, [])]
        for item in slices_of(api, name)
        if item["addressType"] == "IPv4"
        for endpoint in item["endpoints"]
    }
    return found if len(found) == len(NODES) and all(found.values()) else {}


def test_the_controller_writes_a_slice_for_each_family(shop: Api) -> None:
    shop.apply(service("shop/dual", {"http": 80}, selector={"app": "web"}))

    def addresses() -> dict[str, set[str]]:
        found = {
            item["addressType"]: {ip for endpoint in item["endpoints"] or [] for ip in endpoint["addresses"]}
            for item in slices_of(shop, "dual")
        }
        return found if len(found) == 2 and all(len(ips) == len(NODES) for ips in found.values()) else {}

    found = wait_for(addresses, "slices of both families with four endpoints")

    assert found == {
        "IPv4": {f"10.244.{i}.10" for i in range(1, 5)},
        "IPv6": {f"fd00:10:244:{i}::10" for i in range(1, 5)},
    }


@pytest.mark.parametrize("distribution", ["PreferClose", "PreferSameZone"])
def test_zone_hints_for_a_preference_of_the_zone(shop: Api, distribution: str) -> None:
    name = distribution.lower()
    shop.apply(service(f"shop/{name}", {"http": 80}, selector={"app": "web"}, trafficDistribution=distribution))

    hints = wait_for(lambda: hints_by_node(shop, name, "forZones"), "a zone hint on each endpoint")

    assert hints == {node: [zone] for node, zone in NODES.items()}


def test_node_hints_for_a_preference_of_the_node(shop: Api) -> None:
    shop.apply(service("shop/near", {"http": 80}, selector={"app": "web"}, trafficDistribution="PreferSameNode"))

    hints = wait_for(lambda: hints_by_node(shop, "near", "forNodes"), "a node hint on each endpoint")

    assert hints == {node: [node] for node in NODES}
    assert hints_by_node(shop, "near", "forZones") == {node: [zone] for node, zone in NODES.items()}


def test_an_unready_and_a_terminating_pod_show_in_the_slice(shop: Api) -> None:
    add_running_pod(shop, pod("shop/probe-1", node_name="cp-a1", labels={"app": "probe"}), "10.244.1.99")
    shop.apply(service("shop/probe", {"http": 80}, ipFamilyPolicy="SingleStack"))

    def conditions() -> dict[str, bool]:
        endpoints = [e for item in slices_of(shop, "probe") for e in item["endpoints"] or []]
        return dict(endpoints[0]["conditions"]) if endpoints else {}

    wait_for(lambda: conditions().get("ready"), "the endpoint is ready")
    shop.delete("Pod", "shop/probe-1", grace_s=30)
    wait_for(lambda: conditions() == {"ready": False, "serving": True, "terminating": True}, "it drains")
    shop.patch_status("Pod", "shop/probe-1", pod_status("10.244.1.99", ready=False))
    wait_for(lambda: conditions() == {"ready": False, "serving": False, "terminating": True}, "it drains unready")
    shop.delete("Pod", "shop/probe-1")
    wait_for(lambda: not conditions(), "it is gone")


def test_the_daemonset_controller_counts_ready_nodes(shop: Api) -> None:
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    meta = {"name": "agent", "namespace": "shop"}
    shop.apply({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": spec})

    def status() -> dict[str, Any]:
        return dict(shop.get("DaemonSet", "shop/agent").get("status", {}))

    wait_for(lambda: status().get("desiredNumberScheduled") == len(NODES), "one pod wanted on each node")
    wait_for(
        lambda: {p["spec"].get("nodeName") for p in shop.items("Pod", "shop", selector="app=agent")} == set(NODES),
        "the scheduler bound one pod to each node",
    )


def test_the_nodes_get_pod_ranges_of_both_families(shop: Api) -> None:
    ranges = wait_for(lambda: shop.get("Node", "cp-a1")["spec"].get("podCIDRs"), "pod ranges")

    assert len(ranges) == 2


def test_a_service_account_may_do_what_its_role_says_and_no_more(control_plane: ControlPlane) -> None:
    api = control_plane.api
    add_namespace(api, "guarded")
    control_plane.kubectl("-n", "guarded", "create", "serviceaccount", "reader")
    control_plane.kubectl("create", "clusterrole", "e2e-reader", "--verb=get,list,watch", "--resource=services")
    binding = ["--clusterrole=e2e-reader", "--serviceaccount=guarded:reader"]
    control_plane.kubectl("create", "clusterrolebinding", "e2e-reader", *binding)
    reader = Api(control_plane.access(control_plane.service_account_token("guarded", "reader")))

    wait_for(lambda: allowed(reader, "Service"), "the binding is in force")

    with pytest.raises(ApiError, match="403 Forbidden"):
        reader.items("Secret", "guarded")
    with pytest.raises(ApiError, match="401 Unauthorized"):
        Api(control_plane.access("no-such-token")).items("Service")


def allowed(api: Api, kind: str) -> bool:
    try:
        api.items(kind)
    except ApiError as error:
        if error.code == 403:
            return False
        raise
    return True


@pytest.mark.usefixtures("outage")
def test_data_outlives_an_outage_of_the_api_server(control_plane: ControlPlane) -> None:
    add_namespace(control_plane.api, "outage")
    port = control_plane.port
    before = control_plane.api.apply(service("outage/kept", {"http": 80}))

    control_plane.stop_apiserver()
    with pytest.raises(UnreachableError):
        control_plane.api.text("/readyz")
    control_plane.start_apiserver()

    after = control_plane.api.get("Service", "outage/kept")
    assert port == control_plane.port
    assert before["metadata"]["uid"] == after["metadata"]["uid"]
    assert before["spec"]["clusterIPs"] == after["spec"]["clusterIPs"]


def await_seen(api: Api, kind: str, since: str, name: str) -> None:
    """Returns once a watch told of it; controllers write objects of every kind, whenever they like."""
    seen = (event["object"]["metadata"]["name"] for event in api.watch(kind, since, timeout_s=60))
    assert name in seen


@pytest.mark.usefixtures("outage")
def test_a_watch_from_before_a_compaction_is_gone(control_plane: ControlPlane) -> None:
    add_namespace(control_plane.api, "compacted")
    old = control_plane.api.apply(service("compacted/one", {"http": 80}))["metadata"]["resourceVersion"]
    control_plane.api.apply(service("compacted/two", {"http": 80}))
    await_seen(control_plane.api, "Service", old, "two")

    control_plane.compact()

    with pytest.raises(ApiError, match=r"410 (Expired|Gone)"):
        next(control_plane.api.watch("Service", old, timeout_s=3))


def test_objects_stored_past_the_server_are_listed_and_watched(control_plane: ControlPlane) -> None:
    api = control_plane.api
    before = api.request("GET", api.path("ConfigMap", "default/x").rpartition("/")[0] + "?limit=1")
    stored = {
        f"/registry/configmaps/default/stored-{number}": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"stored-{number}", "namespace": "default", "uid": f"uid-{number}"},
            "data": {"number": str(number)},
        }
        for number in range(200)
    }

    counts = list(control_plane.store((key, json.dumps(obj).encode()) for key, obj in stored.items()))

    assert counts == [128, 72]
    wanted = {f"stored-{number}" for number in range(200)}
    # One transaction of etcd makes many objects at one revision; the watch cache takes them one by one.
    wait_for(lambda: wanted <= {obj["metadata"]["name"] for obj in api.items("ConfigMap", "default")}, "all are listed")
    assert api.get("ConfigMap", "default/stored-199")["data"] == {"number": "199"}
    await_seen(api, "ConfigMap", before["metadata"]["resourceVersion"], "stored-0")
