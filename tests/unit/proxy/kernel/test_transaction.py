"""A change as batches: whole if it fits, else in an order that misleads no packet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import Family
from proxy.kernel.attributes import parse_attributes, parse_name
from proxy.kernel.batch import Message, Type, batch_bytes, describe
from proxy.kernel.change import Change, MapChange
from proxy.kernel.dumps import iter_elements
from proxy.kernel.elements import LIST_SET
from proxy.kernel.picks import plan_pick_chains
from proxy.kernel.ruleset import LAYOUTS, Data, SetId, SetName
from proxy.kernel.transaction import Objects, missing_chains, plan_batches, plan_elements

WHOLE = 1 << 30
SERVICES = SetId(Family.IPV4, SetName.NODE_PORTS)
ENDPOINTS = SetId(Family.IPV4, SetName.NODE_PORT_ENDPOINTS)
MASQUERADE = SetId(Family.IPV4, SetName.MASQUERADE_NODE_PORTS)
PODS = SetId(Family.IPV4, SetName.LOCAL_PODS)


def keys(set_id: SetId) -> st.SearchStrategy[bytes]:
    size = 12 if set_id is ENDPOINTS else 8
    return st.integers(0, 40).map(lambda number: number.to_bytes(size))


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """Deletes, adds and replacements in a verdict map, its endpoints and a plain set."""
    sets = {}
    for set_id, data in (
        (SERVICES, st.sampled_from([b"drop", b"goto node_port_pick_2"])),
        (ENDPOINTS, st.just(b"x" * 8)),
        (MASQUERADE, st.just(b"")),
    ):
        part = st.dictionaries(keys(set_id), data, max_size=12)
        sets[set_id] = MapChange(delete=draw(part), add=draw(part))
    return Change(sets)


def steps(batches: list[list[Message]]) -> list[tuple[int, Type, str, bytes]]:
    """(batch, message type, set, key) of every element in the order of sending."""
    return [
        (number, message.kind, parse_name(parse_attributes(message.payload)[LIST_SET]), element.key)
        for number, batch in enumerate(batches)
        for message in batch
        for element in iter_elements([message.payload])
    ]


def plan(change: Change, limit_bytes: int) -> list[list[Message]]:
    return [list(batch) for batch in plan_batches(change, Objects(), limit_bytes)]


@given(changes())
def test_a_change_that_fits_is_one_batch_with_deletes_first(change: Change) -> None:
    batches = plan(change, WHOLE)

    kinds = [message.kind for batch in batches for message in batch]
    assert len(batches) <= 1
    assert kinds == sorted(kinds, reverse=True)  # DELSETELEM is the higher number


@given(changes(), st.integers(300, 900))
def test_a_split_change_has_the_same_elements_within_the_limit(change: Change, limit_bytes: int) -> None:
    batches = plan(change, limit_bytes)

    assert all(batch_bytes(batch) <= limit_bytes for batch in batches)
    assert sorted(step[1:] for step in steps(batches)) == sorted(step[1:] for step in steps(plan(change, WHOLE)))


@given(changes(), st.integers(300, 900))
def test_both_halves_of_a_replaced_key_stay_in_one_batch_the_delete_first(change: Change, limit_bytes: int) -> None:
    sent = {step[1:]: (step[0], order) for order, step in enumerate(steps(plan(change, limit_bytes)))}

    for (kind, name, key), (batch, order) in sent.items():
        if kind is Type.NEWSETELEM and (Type.DELSETELEM, name, key) in sent:
            batch_of_delete, order_of_delete = sent[Type.DELSETELEM, name, key]
            assert batch_of_delete == batch
            assert order_of_delete < order


@given(changes(), st.integers(300, 900))
def test_endpoints_come_before_the_verdicts_that_lead_to_them_and_go_after(change: Change, limit_bytes: int) -> None:
    batches = plan(change, limit_bytes)
    verdicts = [batch for batch, _kind, name, _key in steps(batches) if LAYOUTS[SetName(name)].data is Data.VERDICT]
    replaced = {set_id: part.delete.keys() & part.add.keys() for set_id, part in change.sets.items()}

    if len(batches) > 1 and verdicts:
        for batch, kind, name, key in steps(batches):
            if name == ENDPOINTS.name and key not in replaced[ENDPOINTS]:
                assert batch >= verdicts[-1] if kind is Type.DELSETELEM else batch <= verdicts[0]


def test_chains_come_before_the_verdicts_that_lead_to_them() -> None:
    change = Change({SERVICES: MapChange({}, {bytes(8): b"goto node_port_pick_2"})})

    (batch,) = plan_batches(change, Objects(plan_pick_chains([(Family.IPV4, "node_port_pick_2")])), WHOLE)

    assert [describe(message).split()[0] for message in batch] == ["newchain", *["newrule"] * 3, "newsetelem"]


def test_ranges_are_never_separated_since_old_and_new_may_overlap() -> None:
    old = {number.to_bytes(4) + number.to_bytes(4): b"" for number in range(0, 2000, 4)}
    new = {number.to_bytes(4) + (number + 1).to_bytes(4): b"" for number in range(0, 2000, 4)}

    batches = plan(Change({PODS: MapChange(old, new)}), limit_bytes=2000)

    assert [[message.kind for message in batch] for batch in batches] == [[Type.DELSETELEM, Type.NEWSETELEM]]


def test_what_must_come_first_or_last_does_also_when_split() -> None:
    first = Message(Type.NEWTABLE, Family.IPV4, bytes(400))
    last = Message(Type.DELSET, Family.IPV4, bytes(400))
    change = Change({MASQUERADE: MapChange({}, {number.to_bytes(8): b"" for number in range(100)})})

    batches = plan_batches(change, Objects([first], [last]), 600)

    assert list(batches[0]) == [first]
    assert batches[-1][-1] == last
    assert len(batches) > 2


@pytest.mark.parametrize("limit_bytes", [600, WHOLE])
def test_bindings_come_after_their_maps_and_before_any_verdict(limit_bytes: int) -> None:
    maps = Message(Type.NEWSET, Family.IPV4, bytes(400))
    bindings = [Message(Type.NEWSETELEM, Family.IPV4, bytes([number]) * 400) for number in range(3)]
    change = Change({SERVICES: MapChange({}, {bytes(8): b"drop"})})

    batches = plan_batches(change, Objects([maps], bindings=bindings), limit_bytes)

    assert all(batch_bytes(batch) <= limit_bytes for batch in batches)
    assert [message for batch in batches for message in batch] == [maps, *bindings, *plan_elements(change)]


def test_nothing_to_change_is_no_batch() -> None:
    assert plan(Change({}), WHOLE) == []
    assert plan(Change({SERVICES: MapChange({}, {})}), WHOLE) == []
    assert plan_elements(Change({})) == []


@pytest.mark.parametrize(
    ("verdict", "chains", "missing"),
    [
        pytest.param(b"goto node_port_pick_2", set(), {(Family.IPV4, "node_port_pick_2")}, id="not there yet"),
        pytest.param(b"goto node_port_pick_2", {(Family.IPV4, "node_port_pick_2")}, set(), id="there already"),
        pytest.param(
            b"goto node_port_pick_2",
            {(Family.IPV6, "node_port_pick_2")},
            {(Family.IPV4, "node_port_pick_2")},
            id="there in the other family",
        ),
        pytest.param(b"goto refuse", set(), set(), id="a chain of the base"),
        pytest.param(b"drop", set(), set(), id="no chain"),
    ],
)
def test_chains_are_made_where_a_verdict_needs_them(
    verdict: bytes, chains: set[tuple[Family, str]], missing: set[tuple[Family, str]]
) -> None:
    change = Change({SERVICES: MapChange({}, {bytes(8): verdict})})

    assert missing_chains(change, chains) == missing


def test_deletes_need_no_chains() -> None:
    change = Change({SERVICES: MapChange({bytes(8): b"goto node_port_pick_2"}, {})})

    assert missing_chains(change, set()) == set()
