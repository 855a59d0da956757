"""Elements as bytes. The golden ones are what nft 1.0.6 sent for the same element (--debug=mnl, 2026-11-29)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from endpointslice.types import IP, Family, Protocol
from proxy.kernel.attributes import MAX_BYTES, pack_name, parse_attributes
from proxy.kernel.batch import CREATE, ECHO, Message, Type
from proxy.kernel.dumps import iter_elements
from proxy.kernel.elements import LIST_ELEMENTS, pack_adds, pack_deletes, pack_verdict
from proxy.kernel.ruleset import SetId, SetName, key_bytes
from proxy.planner.keys import pack_index, pack_interfaces, pack_node_port, pack_range, pack_target, pack_vip

V4_ENDPOINT = {
    pack_vip(IP("10.0.0.1"), Protocol.TCP, 80) + pack_index(2): pack_target(IP("10.244.0.5"), 8080),
}
V6_VERDICT = {pack_vip(IP("fd00::1"), Protocol.UDP, 53): b"goto refuse"}


def body(message: Message) -> str:
    """The elements of a message, in hex."""
    return parse_attributes(message.payload)[LIST_ELEMENTS].hex(" ", 4)


@pytest.mark.parametrize(
    ("name", "family", "elements", "golden"),
    [
        pytest.param(
            SetName.ENDPOINTS,
            Family.IPV4,
            V4_ENDPOINT,
            "2c000100 18000100 14000100 0a000001 06000000 00500000 02000000 10000200 0c000100 0af40005 1f900000",
            id="an endpoint",
        ),
        pytest.param(
            SetName.SERVICE_PORTS,
            Family.IPV6,
            V6_VERDICT,
            "40000100 20000100 1c000100 fd000000 00000000 00000000 00000001 11000000 00350000 "
            "1c000200 18000200 08000100 fffffffc 0b000200 72656675 73650000",
            id="a verdict that goes to a chain",
        ),
        pytest.param(
            SetName.NO_ENDPOINT_NODE_PORTS,
            Family.IPV4,
            {pack_node_port(Protocol.SCTP, 30000): b"drop"},
            "24000100 10000100 0c000100 84000000 75300000 10000200 0c000200 08000100 00000000",
            id="a plain verdict",
        ),
        pytest.param(
            SetName.CLUSTER_IPS, Family.IPV4, {b"\x0a\0\0\1": b""}, "10000100 0c000100 08000100 0a000001", id="a set"
        ),
        pytest.param(
            SetName.LOCAL_PODS,
            Family.IPV4,
            {pack_range("10.244.1.0/24"): b""},
            "18000100 0c000100 08000100 00000000 08000300 00000001 "  # the space before ends at zero
            "10000100 0c000100 08000100 0af40100 "
            "18000100 0c000100 08000100 0af40200 08000300 00000001",
            id="a range",
        ),
        pytest.param(
            SetName.LOCAL_PODS,
            Family.IPV4,
            {pack_range("0.0.0.0/0"): b""},
            "10000100 0c000100 08000100 00000000",
            id="every address",
        ),
        pytest.param(
            SetName.LOCAL_PODS,
            Family.IPV4,
            {pack_range("240.0.0.0/4"): b""},
            "18000100 0c000100 08000100 00000000 08000300 00000001 10000100 0c000100 08000100 f0000000",
            id="a range up to the highest address has no end",
        ),
        pytest.param(
            SetName.LOCAL_INTERFACES,
            Family.IPV4,
            {pack_interfaces("cni0"): b"", pack_interfaces("veth*"): b""},
            "24000100 18000100 14000100 00000000 00000000 00000000 00000000 08000300 00000001 "
            "1c000100 18000100 14000100 636e6930 00000000 00000000 00000000 "
            "24000100 18000100 14000100 636e6930 00000000 00000000 00000001 08000300 00000001 "
            "1c000100 18000100 14000100 76657468 00000000 00000000 00000000 "
            "24000100 18000100 14000100 76657469 00000000 00000000 00000000 08000300 00000001",
            id="an interface, and all whose names begin so",
        ),
    ],
)
def test_an_added_element_has_the_bytes_that_nft_sends(
    name: SetName, family: Family, elements: dict[bytes, bytes], golden: str
) -> None:
    (message,) = pack_adds(SetId(family, name), elements)

    assert body(message) == golden
    assert message.payload.startswith(pack_name(1, "closeby") + pack_name(2, name))
    assert (message.kind, message.family, message.flags) == (Type.NEWSETELEM, family, CREATE)


def test_a_delete_names_keys_only() -> None:
    (message,) = pack_deletes(SetId(Family.IPV4, SetName.ENDPOINTS), V4_ENDPOINT)

    assert body(message) == "1c000100 18000100 14000100 0a000001 06000000 00500000 02000000"
    assert (message.kind, message.flags) == (Type.DELSETELEM, 0)


def test_a_deleted_range_leaves_the_end_at_zero() -> None:
    (message,) = pack_deletes(SetId(Family.IPV4, SetName.LOCAL_PODS), [pack_range("10.244.1.0/24")])

    assert body(message) == "10000100 0c000100 08000100 0af40100 18000100 0c000100 08000100 0af40200 08000300 00000001"


def test_the_kernel_is_asked_for_the_last_count_of_what_counts() -> None:
    (message,) = pack_deletes(SetId(Family.IPV6, SetName.SERVICE_PORTS), V6_VERDICT)

    assert message.flags == ECHO


def test_nothing_to_say_is_no_message() -> None:
    assert not list(pack_adds(SetId(Family.IPV4, SetName.ENDPOINTS), {}))
    assert not list(pack_deletes(SetId(Family.IPV4, SetName.LOCAL_PODS), []))


@settings(max_examples=20)
@given(st.integers(1, 5000), st.sampled_from(Family), st.sampled_from([SetName.SERVICE_PORTS, SetName.HAIRPIN]))
def test_many_elements_are_cut_by_bytes(count: int, family: Family, name: SetName) -> None:
    set_id = SetId(family, name)
    verdicts = (b"drop", b"goto local_source_node_port_pick_12345") if name is SetName.SERVICE_PORTS else (b"", b"")
    elements = {number.to_bytes(key_bytes(set_id)): verdicts[number % 2] for number in range(count)}

    messages = list(pack_adds(set_id, elements))

    bodies = [parse_attributes(message.payload)[LIST_ELEMENTS] for message in messages]
    assert all(len(part) <= MAX_BYTES for part in bodies)
    assert len(messages) <= 1 + 2 * sum(map(len, bodies)) // MAX_BYTES
    assert {element.key: element.data for element in iter_elements(m.payload for m in messages)} == elements


@pytest.mark.parametrize(
    ("verdict", "code"),
    [(b"drop", "00000000"), (b"accept", "00000001"), (b"return", "fffffffb"), (b"continue", "ffffffff")],
)
def test_verdicts_without_a_chain(verdict: bytes, code: str) -> None:
    assert pack_verdict(verdict).hex(" ", 4) == f"10000200 0c000200 08000100 {code}"
