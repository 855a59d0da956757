"""As an administrator without a cloud I make pools, and Services of type LoadBalancer get addresses out of them."""

import pytest
import yaml

from e2e.addresses import ROOT, Shop
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.waiting import wait_for

pytestmark = pytest.mark.e2e

PATIENCE_S = 120.0  # a definition that comes is noticed by a list that is tried again


def test_a_service_gets_the_first_address_as_a_vip_and_is_told_so(shop: Shop) -> None:
    shop.pool("first", "203.0.113.0/28")
    shop.service("web")

    shop.await_ips("web", "203.0.113.0")

    status = shop.api.get("Service", f"{shop.name}/web")["status"]
    assert status["loadBalancer"]["ingress"] == [{"ip": "203.0.113.0", "ipMode": "VIP"}]
    assert shop.granted("web") == ("True", "Granted", f"203.0.113.0 from pool {shop.name}-first")
    wait_for(
        lambda: ("Normal", "IPAllocated", f"203.0.113.0 from pool {shop.name}-first") in shop.events("web"),
        "an Event says so",
    )


def test_an_address_and_a_pool_are_given_as_asked_for(shop: Shop) -> None:
    shop.pool("first", "203.0.113.0/30")
    shop.pool("second", "203.0.113.8/30", autoAssign=False)
    shop.service("one", asks={"loadBalancerIPs": "203.0.113.2"})
    shop.service("two", loadBalancerIP="203.0.113.3")
    shop.service("three", asks={"address-pool": f"{shop.name}-second"})

    shop.await_ips("one", "203.0.113.2")
    shop.await_ips("two", "203.0.113.3")
    shop.await_ips("three", "203.0.113.8")
    shop.service("three", asks={"loadBalancerIPs": "203.0.113.11"})
    shop.await_ips("three", "203.0.113.11")


def test_two_share_an_address_by_a_key_and_a_third_is_told_why_not(shop: Shop) -> None:
    key = {"allow-shared-ip": "k"}
    shop.pool("one", "203.0.113.7/32")
    shop.service("dns-tcp", asks=key, ports={"dns": 53})
    shop.await_ips("dns-tcp", "203.0.113.7")
    shop.service("web", asks=key)
    shop.await_ips("web", "203.0.113.7")

    shop.service("web-2", asks=key | {"loadBalancerIPs": "203.0.113.7"})

    said = shop.await_refusal("web-2", "SharingPortTaken")
    assert said == f"203.0.113.7 is shared with {shop.name}/web, which has TCP port 80"
    assert shop.ips("web-2") == []


def test_a_refusal_is_an_event_and_a_condition_and_a_freed_address_goes_to_the_one_that_waits(shop: Shop) -> None:
    shop.pool("one", "203.0.113.7/32")
    shop.service("first")
    shop.await_ips("first", "203.0.113.7")
    shop.service("second")

    said = shop.await_refusal("second", "PoolExhausted")
    note = f"PoolExhausted: {said}"
    wait_for(lambda: ("Warning", "AllocationFailed", note) in shop.events("second"), "an Event says so")

    shop.drop("first")

    shop.await_ips("second", "203.0.113.7")
    assert shop.granted("second")[0] == "True"


def test_an_address_is_free_once_the_type_changes(shop: Shop) -> None:
    shop.pool("one", "203.0.113.7/32")
    shop.service("first")
    shop.await_ips("first", "203.0.113.7")
    shop.service("second")
    shop.await_refusal("second", "PoolExhausted")

    shop.api.patch("Service", f"{shop.name}/first", {"spec": {"type": "ClusterIP"}})

    shop.await_ips("second", "203.0.113.7")
    assert shop.ips("first") == []
    wait_for(lambda: shop.granted("first") == ("", "", ""), "it has no condition any more")


def test_what_is_asked_for_in_vain_costs_nothing(shop: Shop) -> None:
    shop.pool("first", "203.0.113.0/30")
    shop.service("web")
    shop.await_ips("web", "203.0.113.0")

    shop.service("web", asks={"loadBalancerIPs": "198.51.100.1"})

    assert shop.await_refusal("web", "NotInAPool").endswith("; it keeps 203.0.113.0")
    assert shop.ips("web") == ["203.0.113.0"]


def test_another_class_is_left_alone_and_ours_is_served(shop: Shop) -> None:
    shop.pool("first", "203.0.113.0/30")
    shop.service("theirs", loadBalancerClass="example.org/other")
    shop.service("ours", loadBalancerClass="closeby.dev/l2")

    shop.await_ips("ours", "203.0.113.0")
    assert shop.ips("theirs") == []
    assert shop.granted("theirs") == ("", "", "")


def test_a_nodes_own_address_is_not_given_out(shop: Shop) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "lb-node"}}
    shop.api.apply(node)
    shop.api.patch_status("Node", "lb-node", {"addresses": [{"type": "InternalIP", "address": "203.0.113.40"}]})
    shop.pool("first", "203.0.113.40/31")
    shop.service("web")
    shop.service("thief", asks={"loadBalancerIPs": "203.0.113.40"})

    shop.await_ips("web", "203.0.113.41")
    assert shop.await_refusal("thief", "NodeAddress") == "203.0.113.40 is a Node's own address"
    shop.api.delete("Node", "lb-node")
    shop.await_ips("thief", "203.0.113.40")


def test_the_documents_example_works(shop: Shop) -> None:
    page = (ROOT / "docs" / "load-balancer.md").read_text()
    example = page.partition("```yaml\n")[2].partition("```")[0]

    for document in yaml.safe_load_all(example):
        shop.api.apply(document)

    wait_for(
        lambda: shop.api.get("Service", "default/web")["status"].get("loadBalancer", {}).get("ingress"), "an address"
    )
    (ingress,) = shop.api.get("Service", "default/web")["status"]["loadBalancer"]["ingress"]
    assert ingress["ip"] == "192.0.2.16"
    for document in yaml.safe_load_all(example):
        name = f"{document['metadata']['namespace']}/{document['metadata']['name']}"
        shop.api.delete(document["kind"], name)


def test_a_foreign_host_that_a_node_tells_of_is_a_condition_while_it_lasts(
    shop: Shop, control_plane: ControlPlane
) -> None:
    definition = str(ROOT / "deploy" / "crds" / "closeby" / "servicel2statuses.yaml")
    mac = "02:00:00:00:00:09"
    status = {
        "node": "n1",
        "serviceName": "web",
        "serviceNamespace": shop.name,
        "conflicts": [{"ip": "203.0.113.7", "mac": mac, "interface": "eth0"}],
    }
    metadata = {"name": "l2-told", "namespace": shop.name}
    told = {"apiVersion": "closeby.dev/v1beta1", "kind": "ServiceL2Status", "metadata": metadata, "status": status}
    shop.pool("one", "203.0.113.7/32")
    shop.service("web")
    shop.await_ips("web", "203.0.113.7")

    def conflicts() -> list[str]:
        conditions = shop.api.get("Service", f"{shop.name}/web")["status"]["conditions"]
        return [one["message"] for one in conditions if one["type"] == "closeby.dev/AddressConflict"]

    control_plane.kubectl("apply", "-f", definition)
    try:
        control_plane.kubectl("wait", "--for=condition=Established", "-f", definition, "--timeout=60s")
        control_plane.kubectl("apply", "--validate=strict", "-f", "-", text=yaml.safe_dump(told))
        said = f"203.0.113.7: {mac}, which is no node's, answers for it"
        wait_for(lambda: conflicts() == [said], "a condition says so", timeout_s=PATIENCE_S)

        control_plane.kubectl("delete", "-n", shop.name, "servicel2statuses.closeby.dev", "l2-told")
        wait_for(lambda: conflicts() == [], "the condition is gone with it", timeout_s=PATIENCE_S)
        assert shop.granted("web")[0] == "True"
    finally:
        control_plane.kubectl("delete", "-f", definition)
