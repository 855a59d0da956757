import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.addresses import join_host_port
from endpointslice.endpoints import merge_endpoints
from endpointslice.types import Endpoint, Family, NodeName, PodName, Protocol, ServicePort, Slice, SlicePort
from tests.builders import HTTP, SLICE_HTTP, a_slice, endpoint, nodes, slice_endpoint, zones
from tests.strategies import PORT_NAMES, families, protocols, slices

N1 = NodeName("n1")
N2 = NodeName("n2")
READY = slice_endpoint()
UNNAMED_UDP = SlicePort("", Protocol.UDP, 5353)

service_ports = st.builds(ServicePort, st.sampled_from(PORT_NAMES), protocols, st.just(80))


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        pytest.param([], [], id="no slices"),
        pytest.param([a_slice([slice_endpoint("fd00::1")], family=Family.IPV6)], [], id="m1 another family"),
        pytest.param(
            [a_slice([slice_endpoint("10.244.0.1")]), a_slice([slice_endpoint("10.244.0.2")], "default/web-2")],
            [endpoint("10.244.0.1"), endpoint("10.244.0.2")],
            id="m3 the union of all slices",
        ),
        pytest.param([a_slice([READY], ports=())], [], id="m4 no ports"),
        pytest.param([a_slice([READY], ports=(UNNAMED_UDP,))], [], id="m7 another name"),
        pytest.param([a_slice([READY], ports=(SlicePort("http", Protocol.UDP, 8080),))], [], id="m7 another protocol"),
        pytest.param(
            [a_slice([READY]), a_slice([READY], "default/web-2", ports=(SlicePort("http", Protocol.TCP, 81),))],
            [endpoint(), endpoint(port=81)],
            id="m7 one name, two numbers in two slices",
        ),
        pytest.param(
            [a_slice([READY], ports=(SLICE_HTTP, SlicePort("http", Protocol.TCP, 81), SLICE_HTTP))],
            [endpoint(), endpoint(port=81)],
            id="m7 one name, two numbers in one slice",
        ),
        pytest.param(
            [
                a_slice(
                    [
                        slice_endpoint(
                            "10.244.0.1",
                            "T",
                            node=N1,
                            zone="za",
                            for_zones=zones("za"),
                            for_nodes=nodes("n1"),
                            pod=PodName("default/a"),
                            pod_uid="u",
                        )
                    ]
                )
            ],
            [
                endpoint(
                    "10.244.0.1",
                    "T",
                    node=N1,
                    zone="za",
                    for_zones=zones("za"),
                    for_nodes=nodes("n1"),
                    pod=PodName("default/a"),
                    pod_uid="u",
                )
            ],
            id="every field of an endpoint comes along",
        ),
        pytest.param(
            [a_slice([slice_endpoint(node=N1), slice_endpoint("10.244.0.1", "T", node=N2)])],
            [endpoint(node=N1)],
            id="m13 a later terminating one loses",
        ),
        pytest.param(
            [a_slice([slice_endpoint("10.244.0.1", "T", node=N2), slice_endpoint(node=N1)])],
            [endpoint(node=N1)],
            id="m13 an earlier terminating one loses",
        ),
        pytest.param(
            [a_slice([slice_endpoint("10.244.0.1", "T", node=N2), slice_endpoint("10.244.0.1", "X", node=N1)])],
            [endpoint("10.244.0.1", "X", node=N1)],
            id="m13 a terminating one loses even to an unready one",
        ),
        pytest.param(
            [a_slice([slice_endpoint("10.244.0.1", "X")]), a_slice([READY], "default/web-2")],
            [endpoint()],
            id="m13 of two that stay, the ready one",
        ),
        pytest.param(
            [a_slice([slice_endpoint("10.244.0.1", "N")]), a_slice([slice_endpoint("10.244.0.1", "T")], "default/w")],
            [endpoint("10.244.0.1", "T")],
            id="m13 of two that terminate, the serving one",
        ),
        pytest.param(
            [a_slice([slice_endpoint(f"10.244.0.{last}") for last in (10, 9, 1)])],
            [endpoint("10.244.0.10"), endpoint("10.244.0.1"), endpoint("10.244.0.9")],
            id="m18 sorted as text",
        ),
    ],
)
def test_merged_endpoints(pieces: list[Slice], expected: list[Endpoint]) -> None:
    assert tuple(expected) == merge_endpoints(pieces, HTTP, Family.IPV4)


@pytest.mark.parametrize(
    "fields",
    [
        {"node": N2},
        {"zone": "zb"},
        {"pod": "default/b"},
        {"pod_uid": "v"},
        {"for_zones": zones("za", "zb")},
        {"for_nodes": nodes("n1", "n2")},
    ],
    ids=" ".join,
)
def test_two_that_differ_in_one_field_are_in_no_order(fields: dict[str, object]) -> None:
    one = slice_endpoint(node=N1, zone="za", pod="default/a", pod_uid="u", for_zones=zones("za"), for_nodes=nodes("n1"))
    other = msgspec.structs.replace(one, **fields)

    assert merge_endpoints([a_slice([one, other])], HTTP, Family.IPV4) == merge_endpoints(
        [a_slice([other, one])], HTTP, Family.IPV4
    )


def test_ipv6_endpoints_sort_by_their_bracketed_text() -> None:
    piece = a_slice([slice_endpoint("fd00::1:2"), slice_endpoint("fd00::1")], family=Family.IPV6)

    merged = merge_endpoints([piece], HTTP, Family.IPV6)

    assert [join_host_port(each.ip, each.port) for each in merged] == ["[fd00::1:2]:8080", "[fd00::1]:8080"]


@given(pieces=st.lists(slices(), max_size=4), port=service_ports, family=families, data=st.data())
def test_the_order_of_slices_and_of_what_is_in_them_does_not_matter(
    pieces: list[Slice], port: ServicePort, family: Family, data: st.DataObject
) -> None:
    shuffled = [
        Slice(
            piece.name,
            piece.service,
            piece.family,
            tuple(data.draw(st.permutations(piece.ports))),
            tuple(data.draw(st.permutations(piece.endpoints))),
        )
        for piece in data.draw(st.permutations(pieces))
    ]

    assert merge_endpoints(pieces, port, family) == merge_endpoints(shuffled, port, family)


@given(pieces=st.lists(slices(), max_size=4), port=service_ports, family=families)
def test_merged_endpoints_are_those_of_the_slices_each_address_once_and_sorted(
    pieces: list[Slice], port: ServicePort, family: Family
) -> None:
    merged = merge_endpoints(pieces, port, family)

    expected = {
        join_host_port(source.ip, slice_port.port)
        for piece in pieces
        if piece.family is family
        for slice_port in piece.ports
        if (slice_port.name, slice_port.protocol) == (port.name, port.protocol)
        for source in piece.endpoints
    }
    assert sorted(expected) == [join_host_port(each.ip, each.port) for each in merged]


@given(pieces=st.lists(slices(), max_size=4), port=service_ports, family=families)
def test_a_terminating_endpoint_never_hides_one_that_stays(
    pieces: list[Slice], port: ServicePort, family: Family
) -> None:
    staying = [
        Slice(
            piece.name,
            piece.service,
            piece.family,
            piece.ports,
            tuple(source for source in piece.endpoints if not source.terminating),
        )
        for piece in pieces
    ]

    merged = merge_endpoints(pieces, port, family)

    assert set(merge_endpoints(staying, port, family)) == {each for each in merged if not each.terminating}


def test_seventy_thousand_endpoints_merge() -> None:
    pieces = [
        a_slice([slice_endpoint(f"10.{high}.{low}.{last}") for last in range(100)], f"default/web-{high}-{low}")
        for high in range(7)
        for low in range(100)
    ]

    assert len(merge_endpoints(pieces, HTTP, Family.IPV4)) == 70_000
