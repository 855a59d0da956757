"""Which word of a plan a visit is judged by."""

import pytest

from e2e.demo.promises import Frontend, Plan, PlanError, Promise, ServicePort, choose_promise
from e2e.demo.visits import Visit
from e2e.world.clients import Target

PODS = {"10.244.1.2": "web-east1", "fd00:10:244:1::2": "web-east1", "10.244.3.2": "web-west1"}


def frontend(kind: str, ip: str | None, client: str, *endpoints: str, source: str = "kept") -> Frontend:
    return Frontend(kind, ip, 80, client, "dnat" if endpoints else "drop", endpoints, "cluster", "all-ready", source)


PLAN = Plan(
    "east-1",
    (
        ServicePort(
            "shop/web",
            "TCP",
            (
                frontend("ClusterIP", "10.96.0.20", "any", "10.244.1.2:8080"),
                frontend("LoadBalancerIP", "203.0.113.80", "any", "10.244.1.2:8080", "10.244.3.2:8080"),
                frontend("LoadBalancerIP", "203.0.113.80", "outside"),
                frontend("NodePort", None, "any", "10.244.3.2:8080", source="masqueraded"),
            ),
        ),
        ServicePort("shop/web", "TCP", (frontend("NodePort", None, "any", "[fd00:10:244:1::2]:8080"),)),
    ),
)


def visit(kind: str, ip: str, origin: str = "this-node", protocol: str = "tcp") -> Visit:
    return Visit("shop/web", "pod on east-1", "client-east1", "east-1", origin, kind, Target(protocol, ip, 80))


@pytest.mark.parametrize(
    ("asked", "pods", "masqueraded"),
    [
        pytest.param(visit("ClusterIP", "10.96.0.20"), {"web-east1"}, False, id="a ClusterIP"),
        pytest.param(
            visit("LoadBalancerIP", "203.0.113.80"), {"web-east1", "web-west1"}, False, id="a VIP from inside"
        ),
        pytest.param(visit("LoadBalancerIP", "203.0.113.80", "outside"), set(), False, id="the VIP from outside"),
        pytest.param(visit("NodePort", "172.30.0.11"), {"web-west1"}, True, id="a NodePort on IPv4"),
        pytest.param(visit("NodePort", "fd00:172:30::b"), {"web-east1"}, False, id="the NodePort on IPv6"),
    ],
)
def test_the_promise_is_that_of_the_frontend_and_the_client(asked: Visit, pods: set[str], *, masqueraded: bool) -> None:
    verdict, tier, reason = "dnat" if pods else "drop", "cluster", "all-ready"

    assert choose_promise(PLAN, asked, PODS) == Promise(verdict, frozenset(pods), tier, reason, masqueraded)


def test_a_plan_that_does_not_know_the_frontend_is_an_error() -> None:
    with pytest.raises(PlanError, match=r"east-1 has no ClusterIP for shop/web at 10\.96\.0\.20"):
        choose_promise(PLAN, visit("ClusterIP", "10.96.0.20", protocol="udp"), PODS)
