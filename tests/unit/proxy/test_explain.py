"""Explanations: a sentence for every code, and whose answer holds for a client."""

import string
from collections.abc import Mapping
from enum import StrEnum

import pytest

from endpointslice.daemonsets import SAME_NODE_OFF, Mode, SameNodeWhy
from endpointslice.topology import LeftOut, Place, Why
from endpointslice.types import CIDR, IP, Node, NodeName, Service, TrafficPolicy
from proxy.explain import LEFT_OUT, SAME_NODE, WHY, Who, choose_answer, classify_client
from proxy.planner.frontends import Claims, FrontendKind, service_claims
from proxy.planner.plan import Rules, ServiceState, Source, plan_service
from proxy.planner.settings import Detect, Settings
from tests.builders import HTTP_NODE_PORT, a_slice, service, slice_endpoint


@pytest.mark.parametrize(
    ("sentences", "codes"),
    [
        pytest.param(WHY, Why, id="why a choice was made"),
        pytest.param(LEFT_OUT, LeftOut, id="why an endpoint is left out"),
        pytest.param(SAME_NODE, SameNodeWhy, id="why the same-node rule is on or off"),
    ],
)
def test_every_code_has_a_sentence_of_its_own(sentences: Mapping[StrEnum, str], codes: type[StrEnum]) -> None:
    assert set(sentences) == set(codes)
    assert len(set(sentences.values())) == len(sentences)
    assert all(
        text and text[-1] not in string.punctuation.replace(")", "") for text in sentences.values() if "=" not in text
    )


def test_the_sentences_name_the_modes_as_the_flag_has_them() -> None:
    assert SAME_NODE[SameNodeWhy.ALWAYS].endswith(f"--same-node-for-daemon-sets={Mode.ALWAYS}")
    assert SAME_NODE[SameNodeWhy.NEVER].endswith(f"--same-node-for-daemon-sets={Mode.NEVER}")


NODE = Node(NodeName("n1"), addresses=(IP("192.0.2.1"), IP("2001:db8::1")))
CIDRS = (CIDR("10.244.0.0/16"), CIDR("fd00:10:244::/56"))


@pytest.mark.parametrize(
    ("client", "node", "cidrs", "who", "words"),
    [
        pytest.param("192.0.2.1", NODE, CIDRS, Who.HOST, "an address of node n1", id="the node's own"),
        pytest.param("2001:db8::1", NODE, (), Who.HOST, "an address of node n1", id="its own, the other family"),
        pytest.param("10.244.3.7", NODE, CIDRS, Who.POD, "a pod: inside the cluster CIDR 10.244.0.0/16", id="a pod"),
        pytest.param("fd00:10:244::7", None, CIDRS, Who.POD, "fd00:10:244::/56", id="a pod, and no Node known"),
        pytest.param(
            "203.0.113.9", NODE, CIDRS, Who.OUTSIDE, "outside the cluster CIDR 10.244.0.0/16,fd00", id="outside"
        ),
        pytest.param("10.244.3.7", NODE, (), Who.OUTSIDE, "no cluster CIDR is known", id="a pod that nothing tells"),
    ],
)
def test_who_a_client_is(client: str, node: Node | None, cidrs: tuple[CIDR, ...], who: Who, words: str) -> None:
    found, why = classify_client(IP(client), node, Settings(NodeName("n1"), cidrs))

    assert found is who
    assert words in why


WITH_CIDRS = Node(NodeName("n1"), pod_cidrs=(CIDR("10.244.1.0/24"),))


@pytest.mark.parametrize(
    ("client", "node", "settings", "who", "words"),
    [
        pytest.param(
            "10.244.1.7",
            WITH_CIDRS,
            Settings(NodeName("n1"), detect=Detect.NODE_CIDR),
            Who.POD,
            "a pod: inside this node's podCIDR 10.244.1.0/24",
            id="NodeCIDR: a pod here",
        ),
        pytest.param(
            "10.244.2.7",
            WITH_CIDRS,
            Settings(NodeName("n1"), CIDRS, detect=Detect.NODE_CIDR),
            Who.OUTSIDE,
            "outside this node's podCIDR 10.244.1.0/24",
            id="NodeCIDR: a pod of another node",
        ),
        pytest.param(
            "10.244.1.7",
            WITH_CIDRS,
            Settings(NodeName("n1"), detect=Detect.BRIDGE_INTERFACE, interface="cni0"),
            Who.POD,
            "packets are told by interface, BridgeInterface cni0",
            id="an interface: by the podCIDR, as well as an address can tell",
        ),
        pytest.param(
            "10.244.1.7",
            NODE,
            Settings(NodeName("n1"), detect=Detect.INTERFACE_NAME_PREFIX, interface="veth"),
            Who.OUTSIDE,
            "no podCIDR of this node is known",
            id="an interface, and no podCIDR",
        ),
    ],
)
def test_who_a_client_is_in_other_detect_modes(
    client: str, node: Node, settings: Settings, who: Who, words: str
) -> None:
    found, why = classify_client(IP(client), node, settings)

    assert found is who
    assert words in why


NODE_PORT_LOCAL = service(type="NodePort", ports=(HTTP_NODE_PORT,), external_traffic_policy=TrafficPolicy.LOCAL)
HERE, THERE = "10.244.0.1", "10.244.1.1"


@pytest.mark.parametrize(
    ("of", "kind", "who", "ips", "source"),
    [
        pytest.param(service(), FrontendKind.CLUSTER_IP, Who.POD, [HERE, THERE], Source.KEPT, id="pod to ClusterIP"),
        pytest.param(
            service(), FrontendKind.CLUSTER_IP, Who.HOST, [HERE, THERE], Source.MASQUERADED, id="host to ClusterIP"
        ),
        pytest.param(
            service(),
            FrontendKind.CLUSTER_IP,
            Who.OUTSIDE,
            [HERE, THERE],
            Source.MASQUERADED,
            id="outside to ClusterIP",
        ),
        pytest.param(
            NODE_PORT_LOCAL, FrontendKind.NODE_PORT, Who.POD, [HERE, THERE], Source.KEPT, id="pod to a Local NodePort"
        ),
        pytest.param(
            NODE_PORT_LOCAL,
            FrontendKind.NODE_PORT,
            Who.HOST,
            [HERE, THERE],
            Source.MASQUERADED,
            id="host to a Local NodePort",
        ),
        pytest.param(
            NODE_PORT_LOCAL, FrontendKind.NODE_PORT, Who.OUTSIDE, [HERE], Source.KEPT, id="outside to a Local NodePort"
        ),
    ],
)
def test_the_answer_that_holds_for_a_client(
    of: Service, kind: FrontendKind, who: Who, ips: list[str], source: Source
) -> None:
    claims = Claims()
    claims.replace(of.name, service_claims(of))
    endpoints = [slice_endpoint(HERE, node=NodeName("n1")), slice_endpoint(THERE, node=NodeName("n2"))]
    plan = plan_service(
        ServiceState(of, [a_slice(endpoints)], SAME_NODE_OFF),
        Place(NodeName("n1"), None),
        Rules(detects_pods=True, masquerade_all=False),
        claims,
    )
    (frontend,) = [frontend for frontend in plan.ports[0].frontends if frontend.frontend.kind is kind]

    answer = choose_answer(frontend, who)

    assert [endpoint.ip for endpoint in answer.decision.choice.endpoints] == ips
    assert answer.source is source
