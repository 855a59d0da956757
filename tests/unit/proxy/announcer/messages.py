"""Hypothesis strategies of every message that announcers send each other, as far as the wire can carry them."""

import ipaddress

from hypothesis import strategies as st

from endpointslice.types import IP, NodeName
from proxy.announcer.ethernet import format_mac, is_host_mac
from proxy.l2.clients import PASSED_A_TICK
from proxy.l2.election import NO_HEIRS, Heirs
from proxy.l2.messages import (
    Answer,
    Asker,
    Beat,
    Body,
    Bye,
    Challenge,
    Claims,
    ClaimState,
    Clients,
    Flags,
    Header,
    Message,
    Offer,
    Release,
    Want,
)
from proxy.l2.types import NODE_NETWORK, Channel, Key, MemberId, Version

WIRES = [Channel("192.0.2.0/24"), Channel("2001:db8::/64"), Channel("10.0.0.0/8")]
WORD = 2**64 - 1

members = st.integers(1, WORD).map(MemberId)
channels = st.sampled_from([*WIRES, NODE_NETWORK])
ages = st.one_of(st.just(float("inf")), st.integers(0, 65534).map(lambda ticks: ticks / 100))
macs = st.one_of(st.just(""), st.binary(min_size=6, max_size=6).filter(is_host_mac).map(format_mac))
ips_v4 = st.integers(0, 2**32 - 1).map(lambda number: IP(str(ipaddress.IPv4Address(number))))
ips_v6 = st.integers(0, 2**128 - 1).map(lambda number: IP(str(ipaddress.IPv6Address(number))))
ips = st.one_of(ips_v4, ips_v6)
keys = st.builds(Key, ips, st.sampled_from(WIRES))
heirs = st.one_of(st.just(NO_HEIRS), st.builds(Heirs, members, members))
claim_states = st.builds(
    ClaimState,
    keys,
    st.builds(Version, st.integers(0, WORD), st.integers(0, WORD).map(MemberId)),
    heirs,
    quiet=st.booleans(),
    released=st.booleans(),
)
spans = st.tuples(st.integers(0, WORD), st.integers(1, WORD + 1)).filter(lambda span: span[0] < span[1])
ranges = st.one_of(
    st.just((0, 0)), st.tuples(st.integers(0, WORD), st.integers(1, WORD + 1)).filter(lambda r: r[0] < r[1])
)
entry_tuples = st.lists(claim_states, max_size=30, unique_by=lambda entry: entry.key).map(tuple)
claims = st.builds(lambda entries, span: Claims(entries, *span), entry_tuples, ranges)
beats = st.builds(
    Beat,
    st.dictionaries(members, ages, max_size=12),
    macs,
    st.integers(1, 65535),
    st.frozensets(st.sampled_from(WIRES)),
)
offers = st.builds(
    Offer,
    st.lists(st.tuples(keys, st.integers(0, WORD)), max_size=30).map(tuple),
    st.booleans(),
    st.integers(0, 10**6).map(lambda ms: ms / 1000),
)
clients = st.one_of(
    *(
        st.builds(
            Clients,
            st.builds(Key, family, st.sampled_from(WIRES)),
            st.lists(st.builds(Asker, family, macs, st.integers(0, 65535)), max_size=PASSED_A_TICK).map(tuple),
        )
        for family in (ips_v4, ips_v6)
    )
)
bodies: st.SearchStrategy[Body] = st.one_of(
    beats,
    claims,
    offers,
    st.builds(Want),
    st.builds(Release, st.sampled_from(WIRES)),
    st.builds(Challenge, st.integers(0, WORD)),
    st.builds(Answer, st.integers(0, WORD), st.text(st.characters(codec="ascii"), max_size=63).map(NodeName)),
    st.builds(Bye),
    clients,
)
headers = st.builds(
    Header,
    sender=members,
    session=st.integers(0, WORD),
    seq=st.integers(0, WORD >> 16),
    clock_s=st.integers(0, 2**40).map(lambda ms: ms / 1000),
    flags=st.sampled_from([Flags.NONE, Flags.DRAINING, Flags.RESTARTING | Flags.STALE]),
    table_age_s=st.integers(0, 2**32 - 1).map(lambda ticks: ticks / 100),
    digest=st.integers(0, WORD),
    count=st.integers(0, 2**32 - 1),
    formats=st.tuples(st.integers(1, 255), st.integers(1, 255)),
    newest_key=st.integers(0, 255),
)
messages = st.builds(Message, headers, bodies, st.integers(0, WORD).map(MemberId))
