"""As an administrator I change pools of addresses, and Services, counts and conditions follow."""

import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from e2e.addresses import NAMESPACE, USABLE, Shop
from e2e.controlplane.waiting import wait_for

pytestmark = pytest.mark.e2e


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
    shop.await_pools()
    shop.service("probe", asks={"address-pool": f"{shop.name}-c-later"})
    shop.await_ips("probe", "203.0.113.16")  # so the namespace's labels are known as well
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


def test_metrics_count_addresses_by_pool(shop: Shop, controller_metrics: str) -> None:
    shop.pool("both", "203.0.113.0/30", "2001:db8:3::/126")
    shop.service("web", ipFamilyPolicy="RequireDualStack")
    shop.await_ips("web", "203.0.113.0", "2001:db8:3::")

    def metrics() -> dict[str, float]:
        with urllib.request.urlopen(f"http://{controller_metrics}/metrics") as page:
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
