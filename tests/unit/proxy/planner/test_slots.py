"""Indexes of endpoints: dense, and moved as little as can be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.planner.keys import pack_index, pack_indexes
from proxy.planner.slots import assign_slots, held_slots

A, B, C, D, E = (letter.encode() for letter in "abcde")
targets = st.sampled_from([A, B, C, D, E, b"f", b"g"])
target_lists = st.lists(targets, unique=True)


@pytest.mark.parametrize(
    ("held", "wanted", "assigned"),
    [
        pytest.param([], [B, A], [B, A], id="a fresh frontend has the order of its endpoints"),
        pytest.param([B, A], [A, B], [B, A], id="what is held stays, whatever the order"),
        pytest.param([A, B, C], [A, B, C, D], [A, B, C, D], id="a new one comes last"),
        pytest.param([A, B, C, D], [B, C, D], [D, B, C], id="the last one fills the gap"),
        pytest.param([A, B, C, D], [A, B, C], [A, B, C], id="the last one goes and nothing moves"),
        pytest.param([A, B, C], [D, B, C], [D, B, C], id="a new one takes the place of one that goes"),
        pytest.param([A, B, C, D], [D], [D], id="many go at once"),
        pytest.param([A, B, C], [B, D, E], [D, B, E], id="some go and more come"),
        pytest.param([A, B], [], [], id="all go"),
        pytest.param([A, A, B], [A, B], [A, B], id="one that a stranger wrote twice is kept once"),
    ],
)
def test_assigning_slots(held: list[bytes], wanted: list[bytes], assigned: list[bytes]) -> None:
    assert list(assign_slots(held, wanted)) == assigned


@given(st.lists(targets), target_lists)
def test_every_wanted_target_has_one_slot_and_nothing_else_has(held: list[bytes], wanted: list[bytes]) -> None:
    assert sorted(assign_slots(held, wanted)) == sorted(wanted)


@given(target_lists, target_lists)
def test_a_kept_target_moves_only_down_into_a_gap_from_the_end(held: list[bytes], wanted: list[bytes]) -> None:
    assigned = assign_slots(held, wanted)

    for index, target in enumerate(assigned):
        if target in held and held[index : index + 1] != [target]:
            assert held[index] not in wanted  # what was here is gone
            assert held.index(target) >= len(wanted)  # and the mover had to leave its index anyway


@given(target_lists.filter(bool), st.data())
def test_removing_one_endpoint_changes_at_most_two_keys(held: list[bytes], data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(held))

    after = assign_slots(held, [target for target in held if target != gone])

    changed = [index for index, target in enumerate(held) if after[index : index + 1] != [target]]
    assert len(changed) <= 2


@given(target_lists)
def test_adding_one_endpoint_changes_one_key(held: list[bytes]) -> None:
    after = assign_slots(held, [b"new", *held])

    assert list(after) == [*held, b"new"]


def test_the_targets_that_a_map_holds_are_read_up_to_the_first_gap() -> None:
    elements = {b"vip" + pack_index(index): target for index, target in ((0, A), (1, B), (3, D))}

    assert held_slots(elements, b"vip") == [A, B]
    assert held_slots(elements, b"vi") == []


@pytest.mark.parametrize("count", [0, 1, 1024, 1025, 70_000])
def test_the_keys_of_a_frontend_are_those_of_its_indexes(count: int) -> None:
    assert pack_indexes(b"vip", count) == [b"vip" + pack_index(index) for index in range(count)]
