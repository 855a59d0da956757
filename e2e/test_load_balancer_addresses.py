"""As an administrator without a cloud I make pools, and Services of type LoadBalancer get addresses out of them."""

import itertools
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from e2e.addresses import METRICS_PORT, NAMESPACE, ROOT, USABLE, ControllerProcess, Shop, install
from e2e.controlplane.api import Api
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.waiting import wait_for

pytestmark = pytest.mark.e2e

_SHOPS = itertools.count(1)


@pytest.fixture(scope="module")
def kubeconfig(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(control_plane, tmp_path_factory.mktemp("controller"))


@pytest.fixture(scope="module")
def controller(kubeconfig: Path) -> Iterator[ControllerProcess]:
    running = ControllerProcess(
        "controller", kubeconfig, kubeconfig.parent, "--metrics-bind-address", f"127.0.0.1:{METRICS_PORT}"
    )
    wait_for(running.leads, "the controller leads")
    yield running
    running.terminate()


@pytest.fixture
def api(control_plane: ControlPlane, controller: ControllerProcess) -> Iterator[Api]:
    """With a controller that had nothing to complain of."""
    yield control_plane.api
    assert "Traceback" not in controller.log()
    assert not controller.events("write_failed")


@pytest.fixture
def shop(api: Api) -> Iterator[Shop]:
    made = Shop(api, f"lb-{next(_SHOPS)}")
    yield made
    made.close()


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


def test_a_pool_counts_its_addresses_by_family(shop: Shop) -> None:
    shop.pool("both", "203.0.113.0/30", "2001:db8:1::/64")
    shop.service("web", ipFamilyPolicy="RequireDualStack")
    shop.await_ips("web", "203.0.113.0", "2001:db8:1::")

    def status() -> dict[str, int]:
        return {key: n for key, n in shop.pool_object("both").get("status", {}).items() if isinstance(n, int)}

    wanted = {"assignedIPv4": 1, "assignedIPv6": 1, "availableIPv4": 3, "availableIPv6": (1 << 63) - 1}
    wait_for(lambda: status() == wanted, "the pool's status")
    shop.drop("web")
    wait_for(lambda: (status()["assignedIPv4"], status()["availableIPv4"]) == (0, 4), "and the address is free again")


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


def test_a_pool_that_goes_takes_its_addresses_along_and_another_gives_new_ones(shop: Shop) -> None:
    shop.pool("first", "203.0.113.0/30")
    shop.service("web")
    shop.await_ips("web", "203.0.113.0")

    shop.drop_pool("first")
    shop.await_refusal("web", "NoPoolMatches" if _others(shop) else "NoPools")
    assert shop.ips("web") == []
    shop.pool("second", "203.0.113.8/30")

    shop.await_ips("web", "203.0.113.8")
    wait_for(lambda: [e[1] for e in shop.events("web")].count("ClearAssignment") == 1, "the loss was told once")


def _others(shop: Shop) -> bool:
    return bool(shop.api.items("IPAddressPool"))


def test_pools_are_for_namespaces_and_services_by_label(shop: Shop) -> None:
    nobody = {"namespaceSelectors": [{"matchLabels": {"shop": "no-such"}}]}
    ours = {"matchLabels": {"shop": shop.name}}
    front = {"namespaceSelectors": [ours], "serviceSelectors": [{"matchLabels": {"tier": "front"}}]}
    shop.pool("a-nobodys", "203.0.113.0/30", serviceAllocation=nobody)
    shop.pool("b-front", "203.0.113.8/30", serviceAllocation=front | {"priority": 1})
    shop.pool("c-later", "203.0.113.16/30", serviceAllocation={"namespaceSelectors": [ours], "priority": 20})
    shop.pool("d-sooner", "203.0.113.24/30", serviceAllocation={"namespaces": [shop.name], "priority": 10})
    shop.service("front", labels={"tier": "front"})
    shop.service("back")

    shop.await_ips("front", "203.0.113.8")
    shop.await_ips("back", "203.0.113.24")
    shop.service("thief", asks={"address-pool": f"{shop.name}-a-nobodys"})
    shop.await_refusal("thief", "PoolNotAllowed")


def test_a_second_family_comes_when_the_pool_has_it_and_goes_with_it(shop: Shop) -> None:
    shop.pool("first", "203.0.113.0/30")
    shop.service("web", ipFamilyPolicy="PreferDualStack")
    shop.await_ips("web", "203.0.113.0")
    wait_for(lambda: shop.granted("web")[2].endswith("; no IPv6 address is free there"), "what is short is said")

    shop.pool("first", "203.0.113.0/30", "2001:db8:2::/120")
    shop.await_ips("web", "203.0.113.0", "2001:db8:2::")
    shop.pool("first", "203.0.113.0/30")
    shop.await_ips("web", "203.0.113.0")


def test_another_class_is_left_alone_and_ours_is_served(shop: Shop) -> None:
    shop.pool("first", "203.0.113.0/30")
    shop.service("theirs", loadBalancerClass="example.org/other")
    shop.service("ours", loadBalancerClass="closeby.dev/l2")

    shop.await_ips("ours", "203.0.113.0")
    assert shop.ips("theirs") == []
    assert shop.granted("theirs") == ("", "", "")


def test_a_pool_that_overlaps_keeps_its_last_good_version_and_says_so(shop: Shop) -> None:
    shop.pool("a", "203.0.113.0/30")
    shop.pool("b", "203.0.113.4/30")
    shop.service("web", asks={"address-pool": f"{shop.name}-b"})
    shop.await_ips("web", "203.0.113.4")

    shop.pool("b", "203.0.113.0/29")

    def usable() -> tuple[str, str]:
        for one in shop.pool_object("b").get("status", {}).get("conditions", ()):
            if one["type"] == USABLE:
                return one["status"], one["message"]
        return "", ""

    wait_for(lambda: usable()[0] == "False", "the pool says so")
    assert usable()[1] == (
        f"spec.addresses[0]: 203.0.113.0-203.0.113.7 overlaps 203.0.113.0-203.0.113.3 of pool {shop.name}-a; "
        "its last good version stands"
    )
    assert shop.ips("web") == ["203.0.113.4"]
    shop.drop_pool("a")
    wait_for(lambda: usable()[0] == "True", "and is used once nothing is in its way")


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


def test_metrics_count_addresses_by_pool(shop: Shop) -> None:
    shop.pool("both", "203.0.113.0/30", "2001:db8:3::/126")
    shop.service("web", ipFamilyPolicy="RequireDualStack")
    shop.await_ips("web", "203.0.113.0", "2001:db8:3::")

    def metrics() -> dict[str, float]:
        with urllib.request.urlopen(f"http://127.0.0.1:{METRICS_PORT}/metrics") as page:
            families = [*text_string_to_metric_families(page.read().decode())]
        samples = (sample for family in families for sample in family.samples)
        return {one.name: one.value for one in samples if one.labels.get("pool") == f"{shop.name}-both"}

    prefix = "metallb_allocator"
    assert metrics() == {
        f"{prefix}_addresses_total": 8,
        f"{prefix}_addresses_in_use_total": 2,
        f"{prefix}_ipv4_addresses_total": 4,
        f"{prefix}_ipv4_addresses_in_use_total": 1,
        f"{prefix}_ipv6_addresses_total": 4,
        f"{prefix}_ipv6_addresses_in_use_total": 1,
        f"{prefix}_services_allocated_total": 1,
    }


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


def test_what_gets_broken_keeps_its_last_good_version_and_an_event_says_so(shop: Shop) -> None:
    shop.pool("first", "203.0.113.0/30")
    shop.service("web")
    shop.await_ips("web", "203.0.113.0")

    shop.pool("first", "203.0.113.9-203.0.113.1")
    repeated = [{"matchLabels": {"a": "b"}}] * 2  # which a schema can't tell
    name = f"{shop.name}-twice"
    shop.api.apply(
        {
            "apiVersion": "metallb.io/v1beta1",
            "kind": "L2Advertisement",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"nodeSelectors": repeated},
        }
    )

    wrong = '"203.0.113.9-203.0.113.1" ends before it begins; write it as 203.0.113.1-203.0.113.9'
    notes = {
        (f"{shop.name}-first", f"spec.addresses[0]: {wrong}; its last good version stands"),
        (name, "spec.nodeSelectors[1]: repeats an earlier selector"),
    }
    wait_for(lambda: notes <= shop.events_of_objects(), "Events say so")
    shop.service("more")
    shop.await_ips("more", "203.0.113.1")
    assert shop.ips("web") == ["203.0.113.0"]
    shop.api.delete("L2Advertisement", f"{NAMESPACE}/{name}")
