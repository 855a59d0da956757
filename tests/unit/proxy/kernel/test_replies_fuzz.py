"""Whatever bytes the kernel sends, reading them ends and raises nothing."""

from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import Family
from proxy.conntrack.flows import Judgement
from proxy.conntrack.messages import scan_flows
from proxy.kernel.attributes import parse_attributes, parse_name
from proxy.kernel.base import parse_chain, parse_rule, parse_set
from proxy.kernel.batch import Message, Type, describe, find_refusal, is_final, iter_replies, parse_error
from proxy.kernel.dumps import iter_elements, unpack_counters, unpack_elements
from proxy.kernel.elements import pack_adds
from proxy.kernel.monitor import touches
from proxy.kernel.ruleset import SetId, SetName
from tests.fuzz_inputs import damaged

set_ids = st.builds(SetId, st.sampled_from(Family), st.sampled_from(SetName))
PACKED = [
    *(
        message.payload
        for message in pack_adds(
            SetId(Family.IPV4, SetName.SERVICE_PORTS), {bytes(12): b"goto pick_2", b"a" * 12: b"drop"}
        )
    ),
    *(message.payload for message in pack_adds(SetId(Family.IPV4, SetName.ENDPOINTS), {bytes(16): bytes(8)})),
    *(
        message.payload
        for message in pack_adds(SetId(Family.IPV4, SetName.LOCAL_PODS), {b"\x0a\0\0\0\x0a\0\0\xff": b""})
    ),
]
ERROR = b"\x28\0\0\0\2\0\0\3\7\0\0\0\0\0\0\0" + b"\xf0\xff\xff\xff" + bytes(16) + b"\x08\0\1\0no\0\0"
payloads = st.one_of(st.binary(max_size=60), damaged(PACKED))
datagrams = st.one_of(st.binary(max_size=80), damaged([ERROR, ERROR * 3]))


@given(st.lists(payloads, max_size=3), set_ids)
def test_any_dump_is_read_to_its_end(dump: list[bytes], set_id: SetId) -> None:
    unpack_elements(set_id, dump)
    unpack_counters(dump)
    for element in iter_elements(dump):
        assert isinstance(element.data, bytes)


@given(datagrams, st.integers(0, 2**32 - 1), st.integers(0, 4))
def test_any_datagram_is_read_to_its_end(datagram: bytes, sequence: int, count: int) -> None:
    replies = list(iter_replies(datagram))

    find_refusal(replies, sequence, count)
    touches(replies, tuple(Family))
    for family in Family:
        scan_flows(datagram, family, Judgement({}, {}))
    for reply in replies:
        is_final(reply, sequence, count)
        parse_error(reply)


@given(payloads, st.sampled_from(Type))
def test_any_attributes_are_read_to_their_end(payload: bytes, kind: Type) -> None:
    for value in parse_attributes(payload).values():
        parse_name(value)
    describe(Message(kind, Family.IPV4, payload))
    for parse in (parse_chain, parse_rule, parse_set):
        parse(payload)
