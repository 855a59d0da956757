"""Pools and Services as tests write them."""

from typing import Any

from endpointslice.types import IP, Family, ServiceName
from proxy.addresses.ranges import parse_range
from proxy.addresses.types import DualStack, Namespace, Operator, Pool, Range, Requirement, Selector, Service

V4, V6 = Family.IPV4, Family.IPV6
BOTH = (V4, V6)


def a_range(text: str) -> Range:
    parsed = parse_range(text)
    assert isinstance(parsed, Range), parsed
    return parsed


def pool(name: str, *addresses: str, **fields: Any) -> Pool:  # noqa: ANN401  # a Pool's own
    return Pool(name, tuple(map(a_range, addresses)), **fields)


def selector(**labels: str) -> Selector:
    return tuple(Requirement(key, Operator.IN, frozenset({text})) for key, text in sorted(labels.items()))


def namespace(name: str, **labels: str) -> Namespace:
    return Namespace(name, frozenset(labels.items()))


def service(name: str, *held: str, **fields: Any) -> Service:  # noqa: ANN401  # a Service's own
    """In namespace "shop" if no other is named; `asks` are annotations without their prefix."""
    full = name if "/" in name else f"shop/{name}"
    asks = {f"metallb.io/{key}": text for key, text in fields.pop("asks", {}).items()}
    annotations = asks | fields.pop("annotations", {})
    fields.setdefault("ports", frozenset({("TCP", 80)}))
    return Service(ServiceName(full), held=tuple(map(IP, held)), annotations=annotations, **fields)


def dual(name: str, *held: str, policy: DualStack = DualStack.PREFER, **fields: Any) -> Service:  # noqa: ANN401  # a Service's own
    return service(name, *held, dual_stack=policy, families=fields.pop("families", BOTH), **fields)


def wants_ip(*ips: str) -> dict[str, str]:
    return {"loadBalancerIPs": ",".join(ips)}
