from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import IP, NodeName
from proxy.l2.candidates import Candidate, Vip, Why
from proxy.l2.election import Order, Standing, choose_heirs, rank, spread
from proxy.l2.types import NOBODY, Channel, Key, MemberId, Tier, member_id

WIRE = Channel("192.0.2.0/24")
NAMES = [NodeName(f"n{number}") for number in range(1, 10)]


def vip(number: int, *candidates: Candidate, local: bool = False) -> Vip:
    return Vip(Key(IP(f"192.0.2.{number}"), WIRE), candidates[0], candidates[1:], local=local)


def vips(count: int, nodes: int) -> list[Vip]:
    others = tuple(Candidate(name) for name in NAMES[1:nodes])
    return [
        Vip(Key(IP(f"192.0.{number // 250}.{number % 250}"), WIRE), Candidate(NAMES[0]), others)
        for number in range(count)
    ]


def up(nodes: int, **standings: Standing) -> dict[MemberId, Standing]:
    return {member_id(name): standings.get(name, Standing()) for name in NAMES[:nodes]}


N1, N2, N3 = (member_id(name) for name in NAMES[:3])


@pytest.mark.parametrize(
    ("first", "second", "standings"),
    [
        pytest.param(
            Candidate(NAMES[0]), Candidate(NAMES[1]), {"n2": Standing(returner=True)}, id="returners are last"
        ),
        pytest.param(Candidate(NAMES[0]), Candidate(NAMES[1]), {"n2": Standing(stale=True)}, id="old tables are last"),
        pytest.param(Candidate(NAMES[0]), Candidate(NAMES[1], tier=Tier.NONE), {}, id="ready endpoints before none"),
        pytest.param(
            Candidate(NAMES[0], tier=Tier.DRAINING), Candidate(NAMES[1], tier=Tier.NONE), {}, id="draining before none"
        ),
        pytest.param(Candidate(NAMES[0], preference=5), Candidate(NAMES[1], preference=4), {}, id="by weight"),
        pytest.param(Candidate(NAMES[0], ready=2), Candidate(NAMES[1], ready=1), {}, id="by ready endpoints"),
        pytest.param(Candidate(NAMES[0]), Candidate(NAMES[1]), {"n2": Standing(load=1)}, id="by load"),
        pytest.param(
            Candidate(NAMES[0], preference=1), Candidate(NAMES[1]), {"n1": Standing(load=9)}, id="weight before load"
        ),
    ],
)
def test_the_better_candidate_comes_first(first: Candidate, second: Candidate, standings: dict[str, Standing]) -> None:
    for number in range(20):
        assert rank(vip(number, first, second), up(2, **standings)) == [N1, N2]
        assert rank(vip(number, second, first), up(2, **standings)) == [N1, N2]


def test_a_candidate_that_may_not_or_is_not_up_has_no_rank() -> None:
    entry = vip(1, Candidate(NAMES[0], Why.CORDONED), Candidate(NAMES[1]), Candidate(NAMES[2]))

    assert rank(entry, up(2)) == [N2]


def test_a_returner_with_an_old_table_is_chosen_where_nobody_else_is() -> None:
    entry = vip(1, Candidate(NAMES[0]), Candidate(NAMES[1], Why.EXCLUDED))

    assert spread([entry], up(2, n1=Standing(returner=True, stale=True))) == {entry.key: N1}


def test_three_addresses_on_three_nodes_end_as_one_each() -> None:
    for seed in range(50):
        chance = Random(seed)
        wanted = chance.sample(vips(200, 3), 3)

        assert Counter(spread(wanted, up(3)).values()) == Counter({N1: 1, N2: 1, N3: 1})


@given(count=st.integers(0, 60), nodes=st.integers(1, 9), seed=st.integers(0, 1000))
def test_nobody_gets_two_more_than_another(count: int, nodes: int, seed: int) -> None:
    wanted = Random(seed).sample(vips(100, nodes), count)
    loads = Counter(dict.fromkeys(up(nodes), 0))
    loads.update(spread(wanted, up(nodes)).values())

    assert max(loads.values()) - min(loads.values()) <= 1


@given(nodes=st.integers(1, 9), seed=st.integers(0, 1000))
def test_the_order_of_the_input_does_not_matter(nodes: int, seed: int) -> None:
    wanted = vips(40, nodes)
    shuffled = Random(seed).sample(wanted, len(wanted))
    members = list(up(nodes).items())

    assert spread(shuffled, dict(reversed(members))) == spread(wanted, dict(members))


def test_loads_that_are_there_count() -> None:
    owners = spread(vips(4, 3), up(3, n1=Standing(load=4), n2=Standing(load=2)))

    assert Counter(owners.values()) == Counter({N3: 3, N2: 1})


def test_an_address_without_a_candidate_has_no_owner() -> None:
    entry = vip(1, Candidate(NAMES[0], Why.NO_ENDPOINTS))

    assert spread([entry], up(1)) == {}
    assert spread([entry], {}) == {}


@given(nodes=st.integers(2, 9), count=st.integers(1, 40))
def test_heirs_are_two_others_and_spread(nodes: int, count: int) -> None:
    owned = vips(count, nodes)
    heirs = choose_heirs(owned, up(nodes, n1=Standing(load=count)), N1)
    firsts = Counter({member: 0 for member in up(nodes) if member != N1})
    firsts.update(pair.first for pair in heirs.values())

    assert all(N1 not in pair and pair.first != NOBODY for pair in heirs.values())
    assert all(pair.second != pair.first for pair in heirs.values())
    assert all((pair.second != NOBODY) == (nodes > 2) for pair in heirs.values())
    assert max(firsts.values()) - min(firsts.values()) <= 1


def test_losing_a_bystander_moves_no_heir_but_its_own() -> None:
    owned = vips(30, 5)
    before = choose_heirs(owned, up(5), N1)
    rest = {member: standing for member, standing in up(5).items() if member != N3}
    after = choose_heirs(owned, rest, N1)
    moved = [key for key in before if before[key].first != after[key].first and before[key].first != N3]

    assert len(moved) <= len(owned) // 4


@given(
    st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.booleans()), min_size=1, max_size=9),
    st.integers(0, 8),
    st.sets(st.integers(0, 8)),
    st.integers(0, 250),
)
def test_a_place_is_the_number_of_those_that_rank_before(
    rows: list[tuple[int, bool, bool]], me: int, without: set[int], number: int
) -> None:
    candidates = [
        Candidate(NAMES[at], Why.DRAINING if out else Why.ELIGIBLE, preference=weight)
        for at, (weight, _back, out) in enumerate(rows)
    ]
    standings = {member_id(NAMES[at]): Standing(load=at % 2, returner=row[1]) for at, row in enumerate(rows)}
    asked, heirs, mine = vip(number, *candidates), {member_id(NAMES[at]) for at in without - {me}}, member_id(NAMES[me])
    order = [member for member in rank(asked, standings) if member not in heirs]

    place = Order(asked, standings, mine).place(asked.key, heirs)

    assert place == (order.index(mine) if mine in order else None)
