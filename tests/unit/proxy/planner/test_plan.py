"""A Service's answers by kind of client, and the frontends that others have."""

from typing import NamedTuple

import pytest

from endpointslice.daemonsets import SAME_NODE_OFF
from endpointslice.topology import Place, Verdict
from endpointslice.types import IP, Family, NodeName, Service, SliceEndpoint, TrafficPolicy
from proxy.planner.frontends import Claims, FrontendKind, service_claims
from proxy.planner.plan import Client, Lost, Rules, ServicePlan, ServiceState, Source, plan_service
from tests.builders import HTTP_NODE_PORT, a_slice, service, slice_endpoint

LOCAL = TrafficPolicy.LOCAL
HERE = slice_endpoint("10.244.0.1", node=NodeName("n1"))
THERE = slice_endpoint("10.244.1.1", node=NodeName("n2"))
NODE_PORT = service(type="NodePort", ports=(HTTP_NODE_PORT,))
NODE_PORT_LOCAL = service(type="NodePort", ports=(HTTP_NODE_PORT,), external_traffic_policy=LOCAL)
PLAIN = Rules(detects_pods=False, masquerade_all=False)
DETECTING = Rules(detects_pods=True, masquerade_all=False)
MASQUERADE_ALL = Rules(detects_pods=True, masquerade_all=True)
DNAT, DROP, REJECT = Verdict.DNAT, Verdict.DROP, Verdict.REJECT


class Told(NamedTuple):
    """An answer, in short."""

    client: Client
    verdict: Verdict
    ips: tuple[str, ...]
    source: Source


def plan(of: Service, endpoints: list[SliceEndpoint], rules: Rules = PLAIN, *rivals: Service) -> ServicePlan:
    claims = Claims()
    for one in (of, *rivals):
        claims.replace(one.name, service_claims(one))
    return plan_service(
        ServiceState(of, [a_slice(endpoints)], SAME_NODE_OFF), Place(NodeName("n1"), None), rules, claims
    )


BOTH = ("10.244.0.1", "10.244.1.1")


@pytest.mark.parametrize(
    ("of", "endpoints", "rules", "kind", "answers"),
    [
        pytest.param(
            service(),
            [HERE, THERE],
            PLAIN,
            FrontendKind.CLUSTER_IP,
            [Told(Client.ANY, DNAT, BOTH, Source.KEPT)],
            id="a ClusterIP without a detector keeps every source",
        ),
        pytest.param(
            service(),
            [HERE, THERE],
            DETECTING,
            FrontendKind.CLUSTER_IP,
            [Told(Client.OUTSIDE, DNAT, BOTH, Source.MASQUERADED), Told(Client.THIS_NODE, DNAT, BOTH, Source.KEPT)],
            id="a ClusterIP with a detector masquerades what isn't a pod",
        ),
        pytest.param(
            service(),
            [HERE],
            MASQUERADE_ALL,
            FrontendKind.CLUSTER_IP,
            [Told(Client.ANY, DNAT, ("10.244.0.1",), Source.MASQUERADED)],
            id="masqueradeAll",
        ),
        pytest.param(
            service(),
            [],
            DETECTING,
            FrontendKind.CLUSTER_IP,
            [Told(Client.ANY, REJECT, (), Source.KEPT)],
            id="a refusal is the same for everybody",
        ),
        pytest.param(
            NODE_PORT,
            [HERE, THERE],
            DETECTING,
            FrontendKind.NODE_PORT,
            [Told(Client.ANY, DNAT, BOTH, Source.MASQUERADED)],
            id="external Cluster masquerades everybody",
        ),
        pytest.param(
            NODE_PORT_LOCAL,
            [HERE, THERE],
            DETECTING,
            FrontendKind.NODE_PORT,
            [
                Told(Client.OUTSIDE, DNAT, ("10.244.0.1",), Source.KEPT),
                Told(Client.THIS_NODE, DNAT, BOTH, Source.KEPT),
            ],
            id="external Local sends this node's pods anywhere",
        ),
        pytest.param(
            NODE_PORT_LOCAL,
            [THERE],
            PLAIN,
            FrontendKind.NODE_PORT,
            [
                Told(Client.OUTSIDE, DROP, (), Source.KEPT),
                Told(Client.THIS_NODE, DNAT, ("10.244.1.1",), Source.MASQUERADED),
            ],
            id="without a detector only the host counts as this node, and it is masqueraded",
        ),
        pytest.param(
            NODE_PORT_LOCAL,
            [],
            DETECTING,
            FrontendKind.NODE_PORT,
            [Told(Client.ANY, REJECT, (), Source.KEPT)],
            id="external Local without endpoints has one answer",
        ),
    ],
)
def test_answers(
    of: Service, endpoints: list[SliceEndpoint], rules: Rules, kind: FrontendKind, answers: list[Told]
) -> None:
    (frontend,) = [f for f in plan(of, endpoints, rules).ports[0].frontends if f.frontend.kind is kind]

    assert answers == [
        Told(
            answer.client,
            answer.decision.verdict,
            tuple(e.ip for e in answer.decision.choice.endpoints),
            answer.source,
        )
        for answer in frontend.answers
    ]


def test_a_frontend_that_an_older_service_has_is_lost_and_the_rest_is_served() -> None:
    older = service("default/old", cluster_ips=(IP("10.96.0.1"),), external_ips=(IP("198.51.100.7"),), created="2024")
    mine = service(external_ips=(IP("198.51.100.7"), IP("198.51.100.8")), created="2025")

    (port,) = plan(mine, [HERE], PLAIN, older).ports

    assert [(lost.frontend.ip, lost.winner) for lost in port.lost] == [("198.51.100.7", "default/old")]
    assert [frontend.frontend.ip for frontend in port.frontends] == ["10.96.0.10", "198.51.100.8"]


def test_a_plan_has_every_port_in_every_family_with_that_familys_endpoints() -> None:
    of = service(cluster_ips=(IP("fd00::a"), IP("10.96.0.10")))

    ports = plan(of, [HERE]).ports

    assert [(port.family, [e.ip for e in port.endpoints]) for port in ports] == [
        (Family.IPV6, []),
        (Family.IPV4, ["10.244.0.1"]),
    ]
    assert all(port.lost == tuple[Lost, ...]() for port in ports)
