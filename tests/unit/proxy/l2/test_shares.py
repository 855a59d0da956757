"""Which member answers which requester of an address that several share, and what can't be shared."""

from collections import Counter
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from endpointslice.types import IP, NodeName
from proxy.l2.candidates import Demand, Options, Reach
from proxy.l2.shares import MOST_WEIGHT, NoShare, choose_sharer, why_not_shared
from proxy.l2.types import NOBODY, Channel, Key, MemberId, member_id

KEY = Key(IP("192.0.2.1"), Channel("192.0.2.0/24"))
N1, N2, N3 = (NodeName(name) for name in ("n1", "n2", "n3"))
SPREAD = Reach(spread=True)
MEMBERS = {member_id(name): 1 for name in (N1, N2, N3)}
weights = st.dictionaries(st.integers(1, 2**64 - 1).map(MemberId), st.integers(1, 20), min_size=1, max_size=6)
requesters = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)).map(lambda ip: IP(str(ip)))


def many(count: int) -> list[IP]:
    """Neighbours in one subnet, which differ in few bits."""
    first = IPv4Address("10.20.0.0")
    return [IP(str(first + number)) for number in range(count)]


@given(weights, requesters)
def test_one_of_the_members_answers_whatever_their_order(members: dict[MemberId, int], requester: IP) -> None:
    chosen = choose_sharer(KEY, requester, members)

    assert chosen in members
    assert chosen == choose_sharer(KEY, requester, dict(sorted(members.items(), reverse=True)))


@given(weights, requesters, st.data())
def test_who_leaves_moves_only_its_own_requesters(
    members: dict[MemberId, int], requester: IP, data: st.DataObject
) -> None:
    gone = data.draw(st.sampled_from(sorted(members)))
    before = choose_sharer(KEY, requester, members)
    after = choose_sharer(KEY, requester, {member: weight for member, weight in members.items() if member != gone})

    assert before in {after, gone}


def test_nobody_answers_where_nobody_shares() -> None:
    assert choose_sharer(KEY, IP("192.0.2.9"), {}) == NOBODY


@pytest.mark.parametrize("key", [KEY, Key(IP("192.0.2.2"), KEY.wire), Key(IP("2001:db8::1"), KEY.wire)], ids=str)
def test_requesters_are_spread_evenly(key: Key) -> None:
    counted = Counter(choose_sharer(key, requester, MEMBERS) for requester in many(3000))

    assert set(counted) == set(MEMBERS)
    assert max(counted.values()) < 1100


def test_a_member_of_three_times_the_weight_is_asked_by_three_times_as_many() -> None:
    first, second, _third = MEMBERS
    counted = Counter(choose_sharer(KEY, requester, {first: 3, second: 1}) for requester in many(4000))

    assert 2.6 < counted[first] / counted[second] < 3.4


def test_a_weight_beyond_reason_costs_no_more_time_than_the_largest() -> None:
    first, second, _third = MEMBERS
    requester = IP("192.0.2.9")

    assert choose_sharer(KEY, requester, {first: 10**9, second: 1}) == choose_sharer(
        KEY, requester, {first: MOST_WEIGHT, second: 1}
    )


@pytest.mark.parametrize(
    ("demand", "reach", "why"),
    [
        pytest.param(Demand(), SPREAD, None, id="nothing stands in the way"),
        pytest.param(Demand(sticky=True), SPREAD, NoShare.AFFINITY, id="affinity"),
        pytest.param(Demand(pinned=frozenset({N1})), SPREAD, NoShare.ONE_NODE, id="pinned to one node"),
        pytest.param(Demand(pinned=frozenset({N1, N2})), SPREAD, None, id="pinned to two"),
        pytest.param(Demand(local=True, ready={N1: 4}), SPREAD, NoShare.ONE_NODE, id="Local, on one node"),
        pytest.param(Demand(local=True, ready={N1: 4, N2: 1}), SPREAD, None, id="Local, on two"),
        pytest.param(Demand(ready={N1: 4}), SPREAD, None, id="Cluster, on one"),
        pytest.param(Demand(), replace(SPREAD, nodes=frozenset({N1})), NoShare.ONE_NODE, id="advertised on one"),
        pytest.param(
            Demand(pinned=frozenset({N1, N2})),
            replace(SPREAD, nodes=frozenset({N2, N3})),
            NoShare.ONE_NODE,
            id="pinned and advertised on one",
        ),
        pytest.param(Demand(preferred={N1: 9}), SPREAD, NoShare.PREFERRED, id="the Service prefers a node"),
        pytest.param(Demand(), replace(SPREAD, weights={N1: 9}), NoShare.PREFERRED, id="an advertisement does"),
        pytest.param(Demand(), replace(SPREAD, disagrees=True), NoShare.DISAGREE, id="another advertisement"),
    ],
)
def test_what_contradicts_sharing(demand: Demand, reach: Reach, why: NoShare | None) -> None:
    assert why_not_shared(demand, reach, Options(shares=True)) == why


def test_nothing_is_shared_by_announcers_that_were_not_told_to() -> None:
    assert why_not_shared(Demand(), SPREAD, Options()) is NoShare.OFF
