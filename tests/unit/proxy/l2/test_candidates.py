import pytest

from endpointslice.types import NodeName
from proxy.l2.candidates import Candidate, Demand, NodeFacts, Options, Reach, Why, judge
from proxy.l2.types import Tier

N1, N2 = NodeName("n1"), NodeName("n2")
SERVED = Demand(ready={N1: 2, N2: 1})
LOCAL = Demand(local=True, ready={N1: 2})
DEFAULTS = Options()


@pytest.mark.parametrize(
    ("facts", "demand", "options", "why"),
    [
        pytest.param(NodeFacts(N1), SERVED, DEFAULTS, Why.ELIGIBLE, id="a node with endpoints"),
        pytest.param(NodeFacts(NodeName("n3")), SERVED, DEFAULTS, Why.ELIGIBLE, id="Cluster needs no endpoint here"),
        pytest.param(NodeFacts(N2), LOCAL, DEFAULTS, Why.NO_LOCAL_ENDPOINT, id="Local needs one"),
        pytest.param(
            NodeFacts(N2),
            Demand(local=True, ready={N1: 1}, draining=frozenset({N2})),
            DEFAULTS,
            Why.ELIGIBLE,
            id="one that drains and serves is one",
        ),
        pytest.param(NodeFacts(N1), Demand(), DEFAULTS, Why.NO_ENDPOINTS, id="nobody serves"),
        pytest.param(
            NodeFacts(N1), Demand(elsewhere=True), DEFAULTS, Why.ELIGIBLE, id="endpoints without a node serve"
        ),
        pytest.param(
            NodeFacts(N1),
            Demand(local=True, elsewhere=True),
            DEFAULTS,
            Why.NO_LOCAL_ENDPOINT,
            id="and make nobody local",
        ),
        pytest.param(
            NodeFacts(N1), Demand(pinned=frozenset({N2}), ready={N1: 1}), DEFAULTS, Why.PINNED_ELSEWHERE, id="pinned"
        ),
        pytest.param(NodeFacts(N1, excluded=True), SERVED, DEFAULTS, Why.EXCLUDED, id="labelled away"),
        pytest.param(
            NodeFacts(N1, excluded=True),
            SERVED,
            Options(ignores_exclude_label=True),
            Why.ELIGIBLE,
            id="the label can be ignored",
        ),
        pytest.param(NodeFacts(N1, out_of_service=True), SERVED, DEFAULTS, Why.OUT_OF_SERVICE, id="out of service"),
        pytest.param(
            NodeFacts(N1, network_available=False), SERVED, DEFAULTS, Why.NETWORK_UNAVAILABLE, id="network unavailable"
        ),
        pytest.param(NodeFacts(N1, ready=False), SERVED, DEFAULTS, Why.NOT_READY, id="NotReady leaves by default"),
        pytest.param(
            NodeFacts(N1, ready=False), SERVED, Options(leaves_not_ready=False), Why.ELIGIBLE, id="NotReady may stay"
        ),
        pytest.param(NodeFacts(N1, cordoned=True), SERVED, DEFAULTS, Why.ELIGIBLE, id="a cordon moves nothing"),
        pytest.param(
            NodeFacts(N1, cordoned=True), SERVED, Options(leaves_cordoned=True), Why.CORDONED, id="unless asked to"
        ),
        pytest.param(NodeFacts(N1, ready_now=False), SERVED, DEFAULTS, Why.ELIGIBLE, id="NotReady for a moment"),
        pytest.param(NodeFacts(N1, exists=False), SERVED, DEFAULTS, Why.NO_NODE, id="no Node of that name"),
        pytest.param(NodeFacts(N1, leaving=True), SERVED, DEFAULTS, Why.LEAVING, id="being deleted"),
        pytest.param(NodeFacts(N1, drained=True), SERVED, DEFAULTS, Why.DRAINING, id="drained by its annotation"),
        pytest.param(NodeFacts(N1, shutting_down=True), SERVED, DEFAULTS, Why.DRAINING, id="shut down"),
        pytest.param(
            NodeFacts(N1, excluded=True, cordoned=True, leaving=True),
            Demand(pinned=frozenset({N2}), ready={N1: 1}),
            DEFAULTS,
            Why.PINNED_ELSEWHERE,
            id="what a person said is told first",
        ),
    ],
)
def test_a_node_may_own_an_address_or_the_reason_is_told(
    facts: NodeFacts, demand: Demand, options: Options, why: Why
) -> None:
    assert judge(facts, demand, options).why is why


def test_tiers_are_ready_then_draining_then_none() -> None:
    demand = Demand(local=True, ready={N1: 2}, draining=frozenset({N1, N2}))
    tiers = [judge(NodeFacts(node), demand, DEFAULTS).tier for node in (N1, N2, NodeName("n3"))]

    assert tiers == [Tier.READY, Tier.DRAINING, Tier.NONE]


def test_weights_of_advertisements_and_of_the_service_add_up() -> None:
    demand = Demand(ready={N1: 1}, preferred={N1: 30})

    assert judge(NodeFacts(N1), demand, DEFAULTS, Reach(weights={N1: 12})).preference == 42


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        pytest.param(None, Why.ELIGIBLE, id="all"),
        pytest.param(frozenset({N1, N2}), Why.ELIGIBLE, id="this one"),
        pytest.param(frozenset({N2}), Why.NO_ADVERTISEMENT, id="another"),
        pytest.param(frozenset(), Why.NO_ADVERTISEMENT, id="none"),
    ],
)
def test_an_advertisement_is_for_some_nodes(nodes: frozenset[NodeName] | None, why: Why) -> None:
    assert judge(NodeFacts(N1), SERVED, DEFAULTS, Reach(nodes)).why is why


def test_the_number_of_endpoints_counts_only_where_being_close_does() -> None:
    plain, close = Demand(ready={N1: 3}), Demand(ready={N1: 3}, prefer_close=True)
    counts = [judge(NodeFacts(N1), demand, DEFAULTS).ready for demand in (plain, close)]

    assert counts == [0, 3]


def test_codes_are_stable() -> None:
    assert {why.value for why in Why} == {
        *("eligible", "no-matching-advertisement", "pinned-elsewhere", "node-network-unavailable", "node-excluded"),
        *("node-out-of-service", "node-not-ready", "node-cordoned", "no-endpoints", "no-local-endpoint"),
        *("not-in-table", "not-programmed", "no-interface", "no-carrier", "draining", "listening", "suspended"),
        *("barred", "address-in-use", "silent", "left"),
        *("no-such-node", "node-leaving", "unknown-interface", "interface-not-advertised"),
    }
    assert Candidate(N1).why is Why.ELIGIBLE
