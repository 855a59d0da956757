"""Random worlds are repeatable, allowed by the API, and never ask what Kubernetes leaves open."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from e2e.differential.expect import list_vips
from e2e.differential.generate import make_world
from e2e.differential.model import ServiceSpec, World
from e2e.differential.objects import render_node, render_state
from e2e.differential.places import CLIENTS, HEADLESS, OTHER_PROXY, endpoint_pool
from e2e.differential.shrink import list_smaller, shrink
from e2e.differential.targets import choose_probes, count_candidates, list_companions, list_probes
from endpointslice.decode import convert_document

WORLDS = [make_world(seed) for seed in range(150)]
STATES = [state for world in WORLDS for state in world.states]


def test_a_seed_gives_the_same_world_each_time() -> None:
    assert make_world(7) == make_world(7)
    assert make_world(7) != make_world(8)


def test_at_most_two_services_claim_one_address_and_port_and_never_with_chance_in_it() -> None:
    for world in WORLDS:
        claims = Counter(
            (ip, port.protocol, port.port)
            for service in world.states[0].services
            for ip in {*service.cluster_ips, *list_vips(service)}
            for port in service.ports
        )

        assert max(claims.values()) <= 2
        assert sum(count == 2 for count in claims.values()) <= 1
        if 2 in claims.values():
            assert not any(service.sticky for service in (world.states[0].services[0], world.states[0].services[-1]))


def test_no_two_node_ports_are_ever_one() -> None:
    for state in STATES:
        node_ports = Counter(port.node_port for service in state.services for port in service.ports if port.node_port)

        assert max([*node_ports.values(), 1]) == 1


def test_an_endpoint_stands_twice_only_if_one_of_the_two_terminates() -> None:
    for state in STATES:
        for service in state.services:
            alive = Counter(
                (one.ip, piece.is_ipv6) for piece in service.slices for one in piece.endpoints if not one.terminating
            )
            assert max(alive.values(), default=0) <= 1


def test_every_endpoint_has_a_server() -> None:
    answered = {ip for ipv6 in (False, True) for ips in endpoint_pool(ipv6=ipv6) for ip in ips}

    for state in STATES:
        assert {e.ip for s in state.services for piece in s.slices for e in piece.endpoints} <= answered


def test_closeby_reads_every_object_that_is_printed() -> None:
    for state in STATES:
        for document in (render_node(state.zone), *render_state(state)):
            (changed,) = convert_document(document)
            assert changed.object is not None or is_hidden(document)


def test_worlds_hold_every_kind_and_policy() -> None:
    services = [service for state in STATES for service in state.services]

    assert {service.type for service in services} == {"ClusterIP", "NodePort", "LoadBalancer"}
    assert {(s.internal_policy, s.external_policy) for s in services} == {
        (internal, external) for internal in ("Cluster", "Local") for external in ("Cluster", "Local")
    }
    assert any(service.sticky for service in services)
    assert any(service.source_ranges and service.balancer_ips for service in services)
    assert any(len(world.states) > 2 for world in WORLDS)
    assert {state.zone for state in STATES} >= {"za", "zb", "zc", None}


def test_probes_are_from_every_client_and_as_many_as_asked_for() -> None:
    rich = max(STATES, key=lambda state: len(list_probes(state)))

    assert {probe.client for probe in list_probes(rich)} == set(CLIENTS)
    chosen = choose_probes(rich, Random(1), 40)
    assert len(chosen) >= 40
    assert len({probe.way for probe in chosen}) == len(chosen)


def test_of_a_binding_that_is_probed_all_frontends_are() -> None:
    for state in STATES:
        probes = list_probes(state)
        chosen = choose_probes(state, Random(1), 40)
        bindings = [probe.binding for probe in chosen if probe.binding]
        if bindings:
            assert [probe for probe in probes if probe.binding == bindings[0]] == [
                probe for probe in probes if probe in chosen and probe.binding == bindings[0]
            ]
            assert set(chosen) >= set(list_companions(state, next(probe for probe in chosen if probe.binding)))


def test_candidates_are_distinct_addresses_and_ports_of_the_family() -> None:
    service = next(s for s in _services() if len(s.slices) > 1 and s.slices[0].endpoints)
    for port in service.ports:
        for ipv6 in (False, True):
            here = {one.ip for piece in service.slices if piece.is_ipv6 is ipv6 for one in piece.endpoints}
            assert count_candidates(service, port, ipv6=ipv6) <= 2 * len(here)


def test_shrinking_leaves_what_the_difference_needs() -> None:
    world = next(world for world in WORLDS if len(world.states) > 2 and len(world.states[-1].services) > 2)
    needed = world.states[-1].services[1].name

    smallest = shrink(world, lambda one: _has(one, needed), 200)

    assert [service.name for service in smallest.states[-1].services] == [needed]
    assert len(smallest.states) == 1
    assert not any(piece.endpoints for piece in smallest.states[-1].services[0].slices)


def test_shrinking_asks_no_more_than_it_may() -> None:
    asked: list[World] = []

    def remember(world: World) -> bool:
        asked.append(world)
        return True

    shrink(WORLDS[0], remember, 3)

    assert len(asked) <= 3


@pytest.mark.parametrize("world", WORLDS[:20], ids=lambda world: f"seed {world.seed}")
def test_each_smaller_world_is_another(world: World) -> None:
    assert all(smaller != world for smaller in list_smaller(world))


def is_hidden(document: dict[str, Any]) -> bool:
    """Whether a label keeps it from service proxies."""
    hiding = {"Service": OTHER_PROXY, "EndpointSlice": HEADLESS}.get(document["kind"])
    return hiding in document["metadata"].get("labels", {})


def _has(world: World, name: str) -> bool:
    return any(service.name == name for service in world.states[-1].services)


def _services() -> list[ServiceSpec]:
    return [service for state in STATES for service in state.services]
