"""Which UDP flows are stale: only those that are certainly ours and certainly wrong."""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.snapshot import EMPTY, Snapshot
from endpointslice.types import IP, Family, Protocol, Service, ServiceName, ServicePort, Slice, SlicePort, TrafficPolicy
from proxy.conntrack.flows import Judgement, KeepSets, added_frontends, deleted_targets, is_stale, pack_socket
from proxy.kernel.change import Change, MapChange
from proxy.kernel.ruleset import SetId, SetName
from proxy.planner.frontends import ClaimKey
from proxy.planner.keys import pack_index, pack_node_port, pack_target, pack_vip
from tests.builders import a_slice, service, slice_endpoint

DNS = ServicePort("dns", Protocol.UDP, 53, 30053)
SLICE_DNS = SlicePort("dns", Protocol.UDP, 5353)
NODE = IP("192.0.2.1")
CLUSTER_IP = pack_socket(IP("10.96.0.10"), 53)
NODE_PORT = pack_socket(NODE, 30053)
A, B, C = (pack_socket(IP(f"10.244.0.{number}"), 5353) for number in (1, 2, 3))

SOCKETS = st.integers(0, 5).map(lambda number: pack_socket(IP(f"10.0.0.{number}"), 53))
SETS = st.frozensets(SOCKETS)


def dns(name: str = "default/web", /, **fields: object) -> Service:
    return service(name, **{"ports": (DNS,), "type": "NodePort", **fields})


def world(services: tuple[Service, ...], *slices: Slice) -> Snapshot:
    return msgspec.structs.replace(
        EMPTY,
        services={one.name: one for one in services},
        slices={one.name: {piece.name: piece for piece in slices if piece.service == one.name} for one in services},
    )


def judge(snapshot: Snapshot, gone: Mapping[ClaimKey, frozenset[bytes]] | None = None) -> Judgement:
    keeps = KeepSets()
    keeps.update(snapshot, snapshot.services)
    return keeps.judge(keeps.names(), [NODE], gone or {})


def dns_slice(**conditions: str) -> Slice:
    endpoints = [slice_endpoint(f"10.244.0.{'abc'.index(name) + 1}", kind) for name, kind in conditions.items()]
    return a_slice(endpoints, ports=(SLICE_DNS,))


@pytest.mark.parametrize(
    ("conditions", "kept"),
    [
        pytest.param({"a": "R", "b": "R"}, {A, B}, id="ready endpoints"),
        pytest.param({"a": "R", "b": "T"}, {A, B}, id="one that drains keeps its flows, though it gets no new ones"),
        pytest.param({"a": "R", "b": "N"}, {A}, id="one that doesn't serve loses them"),
        pytest.param({"a": "X"}, set(), id="without an endpoint that serves all go"),
        pytest.param({}, set(), id="without any endpoint all go"),
    ],
)
def test_what_is_kept(conditions: dict[str, str], kept: set[bytes]) -> None:
    judgement = judge(world((dns(),), dns_slice(**conditions)))

    assert judgement.keep == {CLUSTER_IP: kept, NODE_PORT: kept}
    assert judgement.gone == {}


def test_an_endpoint_that_is_published_while_it_does_not_serve_keeps_its_flows() -> None:
    """New flows go to it, so kube-proxy, which asks for serving alone, would cut them again and again."""
    published = a_slice([slice_endpoint("10.244.0.1", ready=True, serving=False)], ports=(SLICE_DNS,))

    assert judge(world((dns(),), published)).keep[CLUSTER_IP] == {A}


def test_policies_and_hints_change_nothing() -> None:
    plain = judge(world((dns(),), dns_slice(a="R", b="R")))
    local = dns(
        internal_traffic_policy=TrafficPolicy.LOCAL,
        external_traffic_policy=TrafficPolicy.LOCAL,
    )

    assert judge(world((local,), dns_slice(a="R", b="R"))) == plain


def test_only_udp_is_judged() -> None:
    tcp = dns(ports=(ServicePort("dns", Protocol.TCP, 53), ServicePort("s", Protocol.SCTP, 54)))

    assert judge(world((tcp,), dns_slice(a="R"))) == Judgement({}, {})


def test_every_address_of_a_service_is_judged() -> None:
    many = dns(external_ips=(IP("198.51.100.1"),), load_balancer_ips=(IP("198.51.100.2"),))

    destinations = judge(world((many,), dns_slice(a="R"))).keep

    assert destinations.keys() == {
        CLUSTER_IP,
        NODE_PORT,
        pack_socket(IP("198.51.100.1"), 53),
        pack_socket(IP("198.51.100.2"), 53),
    }


def test_of_two_services_with_one_address_the_winner_is_asked() -> None:
    shared = {"external_ips": (IP("198.51.100.1"),), "type": "ClusterIP"}
    younger = dns("default/a", created="2026-01-02T00:00:00Z", cluster_ips=(IP("10.96.0.11"),), **shared)
    older = dns(created="2026-01-01T00:00:00Z", **shared)

    judgement = judge(world((younger, older), dns_slice(a="R")))

    assert judgement.keep[pack_socket(IP("198.51.100.1"), 53)] == {A}
    assert judgement.keep[pack_socket(IP("10.96.0.11"), 53)] == frozenset()


@pytest.mark.parametrize(
    ("answers_from", "stale"),
    [
        pytest.param(A, False, id="an endpoint that serves"),
        pytest.param(B, True, id="one that doesn't"),
        pytest.param(CLUSTER_IP, True, id="the frontend itself: never translated"),
    ],
)
def test_a_flow_to_a_frontend(answers_from: bytes, *, stale: bool) -> None:
    judgement = judge(world((dns(),), dns_slice(a="R")))

    assert is_stale(judgement, CLUSTER_IP, answers_from) is stale


@pytest.mark.parametrize(
    ("destination", "answers_from", "stale"),
    [
        pytest.param(CLUSTER_IP, A, True, id="its flow to an endpoint that our table had"),
        pytest.param(CLUSTER_IP, C, False, id="a flow to elsewhere is somebody else's"),
        pytest.param(CLUSTER_IP, CLUSTER_IP, False, id="as is one that nobody translates"),
        pytest.param(NODE_PORT, A, True, id="its flow by the node port"),
        pytest.param(pack_socket(IP("192.0.2.9"), 30053), A, False, id="that port of another host"),
    ],
)
def test_a_flow_to_a_frontend_that_was(destination: bytes, answers_from: bytes, *, stale: bool) -> None:
    former = {
        ClaimKey(Family.IPV4, IP("10.96.0.10"), Protocol.UDP, 53): frozenset({A}),
        ClaimKey(Family.IPV4, None, Protocol.UDP, 30053): frozenset({A}),
    }

    assert is_stale(judge(EMPTY, former), destination, answers_from) is stale


def test_a_frontend_that_somebody_has_again_is_judged_by_its_endpoints() -> None:
    former = {ClaimKey(Family.IPV4, IP("10.96.0.10"), Protocol.UDP, 53): frozenset({A})}

    assert not is_stale(judge(world((dns(),), dns_slice(a="R")), former), CLUSTER_IP, A)


def test_only_services_with_udp_ports_are_touched() -> None:
    keeps = KeepSets()
    web = service("default/tcp")
    both = world((dns(), web), dns_slice(a="R"))

    assert keeps.update(both, both.services) == {"default/web"}
    assert keeps.update(both, [ServiceName("default/tcp")]) == frozenset()
    assert keeps.update(EMPTY, [ServiceName("default/web")]) == {"default/web"}
    assert keeps.names() == frozenset()


@pytest.mark.parametrize(
    ("set_id", "prefix", "key"),
    [
        pytest.param(
            SetId(Family.IPV4, SetName.ENDPOINTS),
            pack_vip(IP("10.96.0.10"), Protocol.UDP, 53),
            ClaimKey(Family.IPV4, IP("10.96.0.10"), Protocol.UDP, 53),
            id="a VIP",
        ),
        pytest.param(
            SetId(Family.IPV4, SetName.LOCAL_SOURCE_NODE_PORT_ENDPOINTS),
            pack_node_port(Protocol.UDP, 30053),
            ClaimKey(Family.IPV4, None, Protocol.UDP, 30053),
            id="a node port",
        ),
        pytest.param(
            SetId(Family.IPV6, SetName.ENDPOINTS),
            pack_vip(IP("fd00:96::a"), Protocol.UDP, 53),
            ClaimKey(Family.IPV6, IP("fd00:96::a"), Protocol.UDP, 53),
            id="an IPv6 VIP",
        ),
    ],
)
def test_what_a_change_took_out_of_the_table(set_id: SetId, prefix: bytes, key: ClaimKey) -> None:
    ips = [IP(f"10.244.0.{n}" if set_id.family is Family.IPV4 else f"fd00:244::{n}") for n in (1, 2)]
    tcp = pack_vip(IP("10.96.0.10"), Protocol.TCP, 53) + pack_index(0)
    elements = {prefix + pack_index(index): pack_target(ip, 5353) for index, ip in enumerate(ips)}
    other = SetId(Family.IPV4, SetName.ENDPOINTS)
    change = Change({set_id: MapChange(elements, {})})
    with_tcp = Change({other: MapChange({tcp: pack_target(IP("10.244.0.1"), 80)}, {})})

    assert deleted_targets(change) == {key: {pack_socket(ip, 5353) for ip in ips}}
    assert deleted_targets(with_tcp) == {}


@given(
    keep=st.dictionaries(SOCKETS, SETS),
    gone=st.dictionaries(SOCKETS, SETS),
    flows=st.lists(st.tuples(SOCKETS, SOCKETS)),
)
def test_what_is_nobodys_frontend_stays_and_what_a_frontend_keeps_stays(
    keep: dict[bytes, frozenset[bytes]], gone: dict[bytes, frozenset[bytes]], flows: list[tuple[bytes, bytes]]
) -> None:
    stale = {flow for flow in flows if is_stale(Judgement(keep, gone), *flow)}

    for destination, answers_from in flows:
        if destination in keep:
            assert ((destination, answers_from) in stale) == (answers_from not in keep[destination])
        else:
            assert ((destination, answers_from) in stale) == (answers_from in gone.get(destination, ()))


def test_which_tcp_frontends_a_change_adds() -> None:
    vip, vip_6 = IP("10.96.0.10"), IP("fd00:96::a")
    added = {
        SetId(Family.IPV4, SetName.SERVICE_PORTS): [
            pack_vip(vip, Protocol.TCP, 80),
            pack_vip(vip, Protocol.UDP, 53),
            pack_vip(vip, Protocol.SCTP, 81),
        ],
        SetId(Family.IPV6, SetName.AFFINITY_PORTS): [pack_vip(vip_6, Protocol.TCP, 80)],
        SetId(Family.IPV4, SetName.NODE_PORTS): [pack_node_port(Protocol.TCP, 30080)],
        SetId(Family.IPV4, SetName.MASQUERADE_PORTS): [pack_vip(IP("10.96.0.11"), Protocol.TCP, 80)],
    }
    deleted = {pack_vip(IP("10.96.0.12"), Protocol.TCP, 80): b"goto pick_1"}
    change = Change({set_id: MapChange(deleted, dict.fromkeys(keys, b"drop")) for set_id, keys in added.items()})

    found = added_frontends(change, [NODE, IP("2001:db8::1")])

    assert found == {pack_socket(vip, 80), pack_socket(vip_6, 80), pack_socket(NODE, 30080)}
