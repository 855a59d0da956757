"""Whatever comes in on a wire, reading it gives a value or a reason, and what we send is read as it was meant."""

from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import IP
from proxy.announcer.arp import Arp, Operation, announce_arp, answer_arp, ask_arp, pack_arp, parse_arp, read_arp
from proxy.announcer.echo import Echo, Macs, pack_request, parse_reply
from proxy.announcer.ethernet import Drop, EtherType, Frame, is_host_mac, parse_frame
from proxy.announcer.ndp import Neighbour, announce_ndp, answer_ndp, ask_ndp, parse_ndp, read_ndp
from tests.fuzz_inputs import damaged

MAC, OTHER = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
V4, V6 = IP("192.0.2.10"), IP("2001:db8::10")
REAL = [
    *announce_arp(V4, MAC, both=True),
    ask_arp(V4, MAC, own=None),
    announce_ndp(V6, MAC),
    ask_ndp(V6, MAC, own=IP("2001:db8::1")),
    pack_request(Echo(V4, IP("192.0.2.1"), 1, 2), Macs(MAC, OTHER)),
    pack_request(Echo(V6, IP("fe80::1"), 1, 2), Macs(MAC, OTHER)),
]
macs = st.binary(min_size=6, max_size=6).filter(is_host_mac)
addresses = st.binary(min_size=4, max_size=4)
packets = st.builds(Arp, st.sampled_from(Operation), macs, addresses, st.binary(min_size=6, max_size=6), addresses)


@given(st.one_of(st.binary(max_size=120), damaged(REAL)), st.booleans())
def test_any_bytes_are_read_to_a_value_or_a_reason(data: bytes, broadcast: bool) -> None:  # noqa: FBT001
    frame = parse_frame(data)
    if isinstance(frame, Drop):
        return
    arp, neighbour = parse_arp(frame), parse_ndp(frame)
    if isinstance(arp, Arp):
        read_arp(arp, broadcast=broadcast)
        answer_arp(arp, MAC)
    if isinstance(neighbour, Neighbour):
        read_ndp(neighbour)
        answer_ndp(neighbour, MAC)
    for kind in (EtherType.IPV4, EtherType.IPV6):
        assert isinstance(parse_reply(frame._replace(kind=kind)), Echo | Drop)


@given(packets)
def test_an_arp_packet_comes_out_as_it_went_in(packet: Arp) -> None:
    assert parse_arp(Frame(MAC, OTHER, EtherType.ARP, pack_arp(packet))) == packet
