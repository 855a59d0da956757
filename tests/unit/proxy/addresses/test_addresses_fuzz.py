"""Any objects, however odd, are an answer: decoded, allocated, planned, validated, and encoded again."""

import contextlib
import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.decode import DecodeError
from proxy.addresses.allocate import Classes, allocate
from proxy.addresses.decode import Change, decode_object, decode_page, read_lines
from proxy.addresses.lease import decode_lease
from proxy.addresses.plan import plan_conflicts, plan_pools, plan_problem_notices, plan_services
from proxy.addresses.state import State, apply_list, build_world, list_problems
from proxy.addresses.types import Kind, Service
from proxy.addresses.validate import Document, judge
from tests.fuzz_inputs import damaged, odd_copies

SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "uid": "u",
        "resourceVersion": "7",
        "labels": {"a": "b"},
        "annotations": {
            "metallb.io/address-pool": "p",
            "closeby.dev/allow-shared-ip": "k",
            "metallb.universe.tf/loadBalancerIPs": "192.0.2.1, 2001:db8::1",
        },
    },
    "spec": {
        "type": "LoadBalancer",
        "clusterIPs": ["10.96.0.7", "fd00::7"],
        "ipFamilyPolicy": "PreferDualStack",
        "ports": [{"port": 80, "protocol": "TCP"}],
        "externalTrafficPolicy": "Local",
        "selector": {"a": "b"},
        "loadBalancerIP": "",
    },
    "status": {
        "loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]},
        "conditions": [{"type": "closeby.dev/AddressGranted", "status": "True", "reason": "Granted", "message": ""}],
    },
}
POOL: dict[str, Any] = {
    "apiVersion": "metallb.io/v1beta1",
    "kind": "IPAddressPool",
    "metadata": {"name": "p", "namespace": "metallb-system", "resourceVersion": "8"},
    "spec": {
        "addresses": ["192.0.2.0/28", "2001:db8::-2001:db8::ff"],
        "autoAssign": True,
        "avoidBuggyIPs": True,
        "serviceAllocation": {
            "priority": 1,
            "namespaces": ["shop"],
            "namespaceSelectors": [SELECTOR],
            "serviceSelectors": [SELECTOR],
        },
    },
    "status": {"assignedIPv4": 1, "availableIPv4": 2, "conditions": []},
}
ADVERTISEMENT: dict[str, Any] = {
    "apiVersion": "metallb.io/v1beta1",
    "kind": "L2Advertisement",
    "metadata": {"name": "a", "namespace": "metallb-system", "resourceVersion": "9"},
    "spec": {
        "ipAddressPools": ["p"],
        "nodeSelectors": [SELECTOR],
        "preferredNodeSelectors": [{"weight": 1, "preference": SELECTOR}],
        "interfaces": ["eth0"],
    },
}
NAMESPACE: dict[str, Any] = {"metadata": {"name": "shop", "labels": {"a": "b"}}}
NODE: dict[str, Any] = {"metadata": {"name": "n"}, "status": {"addresses": [{"address": "192.0.2.9"}]}}
L2_STATUS: dict[str, Any] = {
    "metadata": {"name": "l2-x", "namespace": "shop", "resourceVersion": "9"},
    "status": {
        "serviceName": "web",
        "serviceNamespace": "shop",
        "conflicts": [{"ip": "192.0.2.1", "mac": "02:00:00:00:00:09", "interface": "eth0"}],
    },
}
SEEDS = {
    Kind.SERVICE: [SERVICE],
    Kind.POOL: [POOL],
    Kind.ADVERTISEMENT: [ADVERTISEMENT],
    Kind.NAMESPACE: [NAMESPACE],
    Kind.NODE: [NODE],
    Kind.L2_STATUS: [L2_STATUS],
}
NOW = "2026-01-01T00:00:00Z"


@st.composite
def cluster(draw: st.DrawFn) -> list[tuple[Kind, dict[str, Any]]]:
    return [(kind, document) for kind in Kind for document in draw(st.lists(odd_copies(SEEDS[kind]), max_size=2))]


@given(cluster())
def test_any_odd_objects_are_an_answer(objects: list[tuple[Kind, dict[str, Any]]]) -> None:
    found: dict[Kind, list[Change]] = {kind: [] for kind in Kind}
    for kind, document in objects:
        found[kind].append(decode_object(kind, json.dumps(document).encode()))
    state = State()
    for kind, changes in found.items():
        state = apply_list(state, kind, changes)

    world = build_world(state, Classes())
    answer = allocate(world)

    writes = [*plan_services(world.services, answer, NOW).writes, *plan_pools(state, answer, {}, NOW)]
    writes += plan_conflicts(state, NOW)
    assert msgspec.json.encode([write.patch for write in writes])
    assert all(notice.note for notice in plan_problem_notices({}, list_problems(state), "n"))
    assert all(isinstance(one, Service) for one in world.services.values())


@given(st.lists(odd_copies([SERVICE, POOL, ADVERTISEMENT]), max_size=3))
def test_any_odd_manifests_are_judged(documents: list[dict[str, Any]]) -> None:
    verdict = judge([Document("d", one) for one in documents], "metallb-system")

    assert all(str(finding) for finding in verdict.findings)


PAGE = json.dumps({"kind": "ServiceList", "metadata": {"resourceVersion": "1"}, "items": [SERVICE]}).encode()
LINE = json.dumps({"type": "ADDED", "object": SERVICE}).encode()


@given(damaged([PAGE, LINE, json.dumps(SERVICE).encode()]), st.sampled_from(Kind))
def test_any_bytes_are_objects_or_a_reason(content: bytes, kind: Kind) -> None:
    decode_object(kind, content)
    read_lines(kind, iter([content]))
    for decode in (lambda body: decode_page(kind, body), decode_lease):
        with contextlib.suppress(DecodeError):
            decode(content)
