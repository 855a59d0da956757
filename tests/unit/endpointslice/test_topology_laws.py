"""Laws of choosing endpoints, and an oracle for hints written in other words."""

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from endpointslice.daemonsets import SAME_NODE_OFF, SameNode, SameNodeWhy
from endpointslice.topology import (
    Choice,
    Decision,
    LeftOut,
    Place,
    Tier,
    Verdict,
    Why,
    choose_cluster_endpoints,
    choose_port,
    is_usable,
    left_out,
)
from endpointslice.types import Endpoint, Service, ServicePort, TrafficDistribution, TrafficPolicy
from tests.builders import HTTP, HTTP_NODE_PORT, nodes, service, zones
from tests.strategies import distributions, endpoint_tuples, places, same_nodes

ON = SameNode(on=True, why=SameNodeWhy.COVERED)

policy_services = st.sampled_from(
    [
        service(
            internal_traffic_policy=internal,
            external_traffic_policy=external,
            type=service_type,
            external_ips=("192.0.2.1",),
            traffic_distribution=distribution,
        )
        for internal in TrafficPolicy
        for external in TrafficPolicy
        for service_type in ("ClusterIP", "NodePort", "LoadBalancer")
        for distribution in (None, *TrafficDistribution)
    ]
)
ports = st.sampled_from([HTTP, HTTP_NODE_PORT])


@given(endpoint_tuples(), policy_services, ports, places, same_nodes)
def test_every_decision_is_endpoints_or_a_reason(
    endpoints: tuple[Endpoint, ...], of: Service, port: ServicePort, place: Place, same_node: SameNode
) -> None:
    choice = choose_port(endpoints, of, port, place, same_node)

    for decision in (choice.cluster_ip, choice.external, choice.short_circuit):
        chosen = decision.choice.endpoints
        assert (decision.verdict is Verdict.DNAT) == bool(chosen)
        assert (decision.choice.tier is Tier.NONE) == (not chosen)
        assert set(chosen) <= set(endpoints)
        assert all(map(is_usable, chosen))
        assert list(chosen) == [each for each in endpoints if each in chosen]
        assert len({each.ready for each in chosen}) <= 1


@given(endpoint_tuples(), policy_services, ports, places, same_nodes)
def test_ready_endpoints_never_lose_to_draining_ones(
    endpoints: tuple[Endpoint, ...], of: Service, port: ServicePort, place: Place, same_node: SameNode
) -> None:
    assume(any(each.ready for each in endpoints))

    choice = choose_port(endpoints, of, port, place, same_node)

    decisions = [(choice.short_circuit, TrafficPolicy.CLUSTER), (choice.cluster_ip, of.internal_traffic_policy)]
    for decision, policy in decisions:
        local = [each for each in endpoints if each.ready and each.node == place.node]
        if policy is TrafficPolicy.CLUSTER or local:
            assert all(each.ready for each in decision.choice.endpoints)


@given(endpoint_tuples(), policy_services, ports, places, same_nodes)
def test_policy_local_never_picks_a_remote_endpoint(
    endpoints: tuple[Endpoint, ...], of: Service, port: ServicePort, place: Place, same_node: SameNode
) -> None:
    choice = choose_port(endpoints, of, port, place, same_node)

    decisions: list[Decision] = []
    if of.internal_traffic_policy is TrafficPolicy.LOCAL:
        decisions.append(choice.cluster_ip)
    if of.external_traffic_policy is TrafficPolicy.LOCAL:
        decisions.append(choice.external)
    assert all(each.node == place.node for decision in decisions for each in decision.choice.endpoints)


@given(endpoint_tuples(), policy_services, ports, places, same_nodes)
def test_traffic_is_refused_if_nothing_serves_anywhere_and_dropped_only_by_policy_local(
    endpoints: tuple[Endpoint, ...], of: Service, port: ServicePort, place: Place, same_node: SameNode
) -> None:
    choice = choose_port(endpoints, of, port, place, same_node)

    verdicts = {choice.cluster_ip.verdict, choice.external.verdict, choice.short_circuit.verdict}
    if any(map(is_usable, endpoints)):
        assert Verdict.REJECT not in verdicts
        assert choice.short_circuit.verdict is Verdict.DNAT
    else:
        assert verdicts == {Verdict.REJECT}
    if TrafficPolicy.LOCAL not in {of.internal_traffic_policy, of.external_traffic_policy}:
        assert Verdict.DROP not in verdicts


@given(endpoint_tuples(), policy_services, ports, places, same_nodes, st.data())
def test_the_order_of_endpoints_does_not_matter(  # noqa: PLR0913, PLR0917  # drawn, not passed by anyone
    endpoints: tuple[Endpoint, ...],
    of: Service,
    port: ServicePort,
    place: Place,
    same_node: SameNode,
    data: st.DataObject,
) -> None:
    shuffled = data.draw(st.permutations(endpoints))

    straight = choose_port(endpoints, of, port, place, same_node)
    crooked = choose_port(shuffled, of, port, place, same_node)

    for one, other in zip(
        (straight.cluster_ip, straight.external, straight.short_circuit),
        (crooked.cluster_ip, crooked.external, crooked.short_circuit),
        strict=True,
    ):
        assert set(one.choice.endpoints) == set(other.choice.endpoints)
        assert (one.verdict, one.choice.tier, one.choice.why) == (other.verdict, other.choice.tier, other.choice.why)


@given(endpoint_tuples(), policy_services, ports, places, same_nodes)
def test_every_endpoint_is_chosen_or_left_out_with_a_reason(
    endpoints: tuple[Endpoint, ...], of: Service, port: ServicePort, place: Place, same_node: SameNode
) -> None:
    choice = choose_port(endpoints, of, port, place, same_node)

    for decision in (choice.cluster_ip, choice.external, choice.short_circuit):
        passed_over = left_out(endpoints, decision.choice, place)
        assert {*decision.choice.endpoints, *(each for each, _reason in passed_over)} == set(endpoints)
        assert len(decision.choice.endpoints) + len(passed_over) == len(endpoints)
        for each, reason in passed_over:
            assert is_usable(each) != (reason in {LeftOut.NOT_READY, LeftOut.TERMINATING})


def choose_by_hints_naively(endpoints: tuple[Endpoint, ...], place: Place) -> set[Endpoint]:
    """kube-proxy's rule once more, in other words: each kind of hint is a table of who is meant for whom."""
    ready = {each for each in endpoints if each.ready}
    if not ready:
        return {each for each in endpoints if each.serving and each.terminating}
    for here, hints_of in (
        (place.node, {each: each.for_nodes for each in ready}),
        (place.zone, {each: each.for_zones for each in ready}),
    ):
        unhinted = {each for each, names in hints_of.items() if not names}
        for_us = {each for each, names in hints_of.items() if here in names}
        if for_us and not unhinted:
            return for_us
    return ready


@given(endpoint_tuples(), places)
def test_hints_choose_as_kube_proxy_does(endpoints: tuple[Endpoint, ...], place: Place) -> None:
    choice = choose_cluster_endpoints(endpoints, None, place, SAME_NODE_OFF)

    assert choose_by_hints_naively(endpoints, place) == set(choice.endpoints)


@given(endpoint_tuples(), distributions, places)
def test_a_preference_changes_nothing_once_any_endpoint_has_a_hint(
    endpoints: tuple[Endpoint, ...], distribution: TrafficDistribution | None, place: Place
) -> None:
    assume(any(each.for_nodes or each.for_zones for each in endpoints))

    choice = choose_cluster_endpoints(endpoints, distribution, place, SAME_NODE_OFF)

    assert choice == choose_cluster_endpoints(endpoints, None, place, SAME_NODE_OFF)


@given(endpoint_tuples(), distributions, places)
def test_the_daemon_set_rule_yields_to_node_hints_alone(
    endpoints: tuple[Endpoint, ...], distribution: TrafficDistribution | None, place: Place
) -> None:
    without = choose_cluster_endpoints(endpoints, distribution, place, SAME_NODE_OFF)

    choice = choose_cluster_endpoints(endpoints, distribution, place, ON)

    local = tuple(each for each in endpoints if each.ready and each.node == place.node)
    if without.why is Why.NODE_HINTS or not local:
        assert choice == without
    else:
        assert choice == Choice(local, Tier.SAME_NODE, Why.DAEMON_SET_ON_NODE)


@given(endpoint_tuples(), places)
def test_without_hints_a_preference_does_what_the_controllers_hints_would(
    endpoints: tuple[Endpoint, ...], place: Place
) -> None:
    """That controller hints each endpoint for its own zone, and under PreferSameNode for its own node as well."""
    bare = [msgspec.structs.replace(each, for_zones=zones(), for_nodes=nodes()) for each in endpoints]
    for distribution in TrafficDistribution:
        hints_nodes = distribution is TrafficDistribution.PREFER_SAME_NODE
        as_written = [
            msgspec.structs.replace(
                each,
                for_zones=zones(*filter(None, [each.zone])),
                for_nodes=nodes(*filter(None, [each.node if hints_nodes else None])),
            )
            for each in bare
        ]

        by_origin = choose_cluster_endpoints(bare, distribution, place, SAME_NODE_OFF)
        by_hints = choose_cluster_endpoints(as_written, distribution, place, SAME_NODE_OFF)

        assert [each.ip for each in by_origin.endpoints] == [each.ip for each in by_hints.endpoints]
        assert by_origin.tier is by_hints.tier
