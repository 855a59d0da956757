"""Hypothesis strategies of input that is almost right: real bytes with some replaced, real objects with odd values."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

from endpointslice.types import Kind
from tests.builders import object_json, service_json, slice_json

ODD_VALUES: list[Any] = [
    *(None, True, -1, 0, 65535, 65536, 2**31, 2**63, 2**64, 10**400, 0.5, -0.0, 1e308),
    *(
        "",
        "\0",
        "x" * 300,
        "web\nb",
        "\u202e",
        "\U0010ffff",
        "UDP",
        "None",
        "Local",
        "-",
        "../..",
        "1e3",
        "99999999999",
    ),
    *(
        "0.0.0.0",
        "255.255.255.255",
        "::",
        "::ffff:10.0.0.1",
        "fe80::1%eth0",
        "10.0.0.0/33",
        "::/0",
        "0.0.0.0/0",
        "1.2.3",
    ),
    *([], {}, [None], [[]], [{}], {"": ""}, ["a"] * 50),
]
SEEDS: dict[Kind, list[dict[str, Any]]] = {
    Kind.SERVICE: [
        service_json(),
        service_json(
            type="LoadBalancer",
            clusterIPs=["10.96.0.10", "fd00::10"],
            ports=[{"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080, "targetPort": "http"}],
            externalIPs=["198.51.100.7"],
            externalTrafficPolicy="Local",
            trafficDistribution="PreferClose",
            sessionAffinity="ClientIP",
            sessionAffinityConfig={"clientIP": {"timeoutSeconds": 10}},
            loadBalancerSourceRanges=["203.0.113.0/24"],
            healthCheckNodePort=32000,
        )
        | {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.1", "ipMode": "VIP"}]}}},
    ],
    Kind.ENDPOINT_SLICE: [
        slice_json(),
        slice_json(
            endpoints=[
                {
                    "addresses": ["10.244.0.1"],
                    "conditions": {"ready": True, "serving": True, "terminating": False},
                    "nodeName": "n1",
                    "zone": "za",
                    "hints": {"forZones": [{"name": "za"}], "forNodes": [{"name": "n1"}]},
                    "targetRef": {"kind": "Pod", "name": "agent-abcde", "namespace": "default", "uid": "u"},
                }
            ],
            annotations={"endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z"},
        ),
    ],
    Kind.NODE: [
        object_json(
            Kind.NODE,
            "n1",
            labels={"topology.kubernetes.io/zone": "za"},
            spec={"podCIDR": "10.244.0.0/24", "podCIDRs": ["10.244.0.0/24"], "taints": [{"key": "a"}]},
            status={
                "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        )
    ],
    Kind.DAEMON_SET: [
        object_json(
            Kind.DAEMON_SET,
            "default/agent",
            spec={
                "template": {"metadata": {"labels": {"app": "web"}}},
                "updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}},
            },
            status={"desiredNumberScheduled": 3},
        )
    ],
    Kind.SERVICE_CIDR: [object_json(Kind.SERVICE_CIDR, "kubernetes", spec={"cidrs": ["10.96.0.0/16"]})],
    Kind.POD: [
        object_json(
            Kind.POD,
            "default/agent-abcde",
            uid="u",
            labels={"app": "web"},
            ownerReferences=[{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "controller": True}],
            spec={"nodeName": "n1", "containers": [{"ports": [{"name": "http", "containerPort": 8080}]}]},
            status={"podIP": "10.244.0.1", "podIPs": [{"ip": "10.244.0.1"}], "conditions": []},
        )
    ],
}


def odd_objects(kind: Kind) -> st.SearchStrategy[dict[str, Any]]:
    """An object of the kind in which up to three values are odd."""
    return odd_copies(SEEDS[kind])


@st.composite
def odd_copies(draw: st.DrawFn, seeds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One of the seeds with up to three odd values."""
    value: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from(list(_paths(value))))
        place: Any = value
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = copy.deepcopy(draw(st.sampled_from(ODD_VALUES)))
    return value


def _paths(value: object) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield (key,)
        yield from ((key, *rest) for rest in _paths(part))


@st.composite
def damaged(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds with some stretches replaced, repeated or cut out."""
    content = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 4))):
        first = draw(st.integers(0, len(content)))
        last = draw(st.integers(first, min(len(content), first + 12)))
        middle = draw(st.one_of(st.binary(max_size=6), st.just(content[first:last] * 2), st.sampled_from(_TOKENS)))
        content = content[:first] + middle + content[last:]
    return content


_TOKENS = [
    b"[" * 3000,
    b'{"a":' * 3000,
    b"\0",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b'"\\ud800"',
    b"1e999",
    b"-" * 50,
    b"&a ",
    b"*a",
    b"<<: ",
    b"!!int ",
]
