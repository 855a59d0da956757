"""What is valid: spec and message, one case a line."""

from typing import Any

import msgspec
import pytest

from proxy.addresses import wire
from proxy.addresses.decode import convert_advertisement, convert_pool
from proxy.addresses.types import Operator, Preference, Requirement
from tests.unit.proxy.addresses.builders import a_range, selector

RED = {"matchLabels": {"team": "red"}}


def pool_of(spec: dict[str, Any], **metadata: str | dict[str, str]) -> wire.Pool:
    return msgspec.convert({"metadata": {"name": "p", **metadata}, "spec": spec}, wire.Pool)


def advertisement_of(spec: dict[str, Any]) -> wire.Advertisement:
    return msgspec.convert({"metadata": {"name": "a"}, "spec": spec}, wire.Advertisement)


def test_every_field_of_a_pool_is_read() -> None:
    allocation = {
        "priority": 7,
        "namespaces": ["shop"],
        "namespaceSelectors": [RED],
        "serviceSelectors": [{"matchExpressions": [{"key": "tier", "operator": "Exists"}]}],
    }
    spec = {
        "addresses": ["192.0.2.0/31", "2001:db8::1-2001:db8::2"],
        "autoAssign": False,
        "avoidBuggyIPs": True,
        "serviceAllocation": allocation,
    }

    read = convert_pool(pool_of(spec, labels={"a": "b"}, creationTimestamp="2026-01-01T00:00:00Z")).read

    assert read.problems == ()
    assert read.pool is not None
    assert read.pool.ranges == (a_range("192.0.2.0/31"), a_range("2001:db8::1-2001:db8::2"))
    assert (read.pool.auto_assign, read.pool.avoid_buggy_ips, read.pool.priority) == (False, True, 7)
    assert read.pool.namespaces == frozenset({"shop"})
    assert read.pool.namespace_selectors == (selector(team="red"),)
    assert read.pool.service_selectors == ((Requirement("tier", Operator.EXISTS),),)
    assert read.pool.labels == {("a", "b")}
    assert read.pool.is_pinned


@pytest.mark.parametrize("allocation", [None, {}, {"priority": 3}, {"namespaces": [], "serviceSelectors": []}])
def test_an_allocation_without_names_and_selectors_is_for_everybody(allocation: dict[str, Any] | None) -> None:
    read = convert_pool(pool_of({"addresses": ["192.0.2.0/31"], "serviceAllocation": allocation})).read

    assert read.problems == ()
    assert read.pool is not None
    assert not read.pool.is_pinned


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "spec.addresses: none given"),
        ({"addresses": ["192.0.2.9-192.0.2.1"]}, "spec.addresses[0]: "),
        ({"addresses": ["192.0.2.0/31", "x"]}, 'spec.addresses[1]: "x" is neither'),
        (
            {"addresses": ["192.0.2.0/24", "198.51.100.0/24", "192.0.2.7-192.0.2.8"]},
            "spec.addresses[2]: 192.0.2.7-192.0.2.8 overlaps spec.addresses[0], 192.0.2.0-192.0.2.255",
        ),
        ({"serviceAllocation": {"priority": -1}}, "spec.serviceAllocation.priority: -1 is below 0"),
        ({"serviceAllocation": {"namespaces": ["a", "a"]}}, 'spec.serviceAllocation.namespaces[1]: "a" is repeated'),
        (
            {"serviceAllocation": {"namespaceSelectors": [RED, RED]}},
            "spec.serviceAllocation.namespaceSelectors[1]: repeats an earlier selector",
        ),
        (
            {"serviceAllocation": {"serviceSelectors": [{"matchExpressions": [{"key": "a", "operator": "Is"}]}]}},
            'serviceSelectors[0].matchExpressions[0].operator: "Is" is none of In, NotIn',
        ),
        (
            {"serviceAllocation": {"serviceSelectors": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]}},
            "matchExpressions[0].values: In takes at least one value",
        ),
        (
            {
                "serviceAllocation": {
                    "serviceSelectors": [
                        {"matchExpressions": [{"key": "", "operator": "Exists", "values": ["b", "b"]}]}
                    ]
                }
            },
            "matchExpressions[0].values: Exists takes no value",
        ),
    ],
)
def test_what_is_wrong_with_a_pool_is_said_by_field(spec: dict[str, Any], said: str) -> None:
    problems = convert_pool(pool_of({"addresses": ["203.0.113.0/31"]} | spec if spec else {})).read.problems

    assert said in "\n".join(map(str, problems))


def test_every_field_of_an_advertisement_is_read() -> None:
    spec = {
        "ipAddressPools": ["p"],
        "ipAddressPoolSelectors": [RED],
        "nodeSelectors": [RED],
        "preferredNodeSelectors": [{"weight": 100, "preference": RED}],
        "interfaces": ["eth0"],
        "serviceSelectors": [RED],
    }

    found = convert_advertisement(advertisement_of(spec))

    assert found.problems == ()
    assert found.advertisement is not None
    assert found.advertisement.pools == {"p"}
    assert found.advertisement.preferences == (Preference(100, selector(team="red")),)
    assert found.advertisement.interfaces == {"eth0"}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"ipAddressPools": ["p", "p"]}, 'spec.ipAddressPools[1]: "p" is repeated'),
        ({"interfaces": ["eth0", "eth0"]}, 'spec.interfaces[1]: "eth0" is repeated'),
        ({"interfaces": ["a/b"]}, 'spec.interfaces[0]: "a/b" is no name of an interface'),
        ({"nodeSelectors": [RED, RED]}, "spec.nodeSelectors[1]: repeats"),
        ({"preferredNodeSelectors": [{"preference": RED}]}, "preferredNodeSelectors[0].weight: None is not a number"),
        ({"preferredNodeSelectors": [{"weight": 101, "preference": RED}]}, "weight: 101 is not"),
        ({"preferredNodeSelectors": [{"weight": 1}]}, "preferredNodeSelectors[0].preference: none given"),
    ],
)
def test_what_is_wrong_with_an_advertisement_is_said_by_field(spec: dict[str, Any], said: str) -> None:
    assert said in "\n".join(map(str, convert_advertisement(advertisement_of(spec)).problems))
