"""The names and shapes that everyone builds on, against the compiled ruleset."""

import pytest

from endpointslice.types import Family
from proxy.kernel.attributes import parse_attributes, parse_number
from proxy.kernel.netlink import load_base
from proxy.kernel.ruleset import (
    KERNEL_SETS,
    LAYOUTS,
    PICKS,
    Data,
    Pick,
    SetId,
    SetName,
    address_bytes,
    key_bytes,
    parse_pick,
)

FLAGS, KEY_SIZE, DATA_TYPE, DATA_SIZE, COUNTER = 3, 5, 6, 7, 17  # NFTA_SET_*
INTERVAL, MAP = 4, 8  # NFT_SET_*
VERDICT_TYPE = 0xFFFFFF00

SETS = [SetId(family, name) for family in Family for name in KERNEL_SETS]


@pytest.mark.parametrize(
    ("chain", "pick"),
    [
        pytest.param("pick_3", Pick(SetName.ENDPOINTS, 3), id="a VIP's"),
        pytest.param("node_port_pick_1", Pick(SetName.NODE_PORT_ENDPOINTS, 1), id="a node port's"),
        pytest.param("local_source_pick_65536", Pick(SetName.LOCAL_SOURCE_ENDPOINTS, 65536), id="a short circuit's"),
        pytest.param(
            "local_source_node_port_pick_12",
            Pick(SetName.LOCAL_SOURCE_NODE_PORT_ENDPOINTS, 12),
            id="a node port's short circuit's",
        ),
        pytest.param("pick_0", None, id="nothing to pick from"),
        pytest.param("pick_03", None, id="a leading zero"),
        pytest.param("pick_3\n", None, id="a line's end"),
        pytest.param("pick_", None, id="no number"),
        pytest.param("refuse", None, id="a base chain"),
        pytest.param("my_pick_3", None, id="another prefix"),
    ],
)
def test_a_chains_name_says_what_it_picks(chain: str, pick: Pick | None) -> None:
    assert pick == parse_pick(chain)


def test_each_map_of_endpoints_has_one_kind_of_pick_chain() -> None:
    maps = [name for name, layout in LAYOUTS.items() if layout.data is Data.ENDPOINT]

    assert sorted(maps) == sorted(PICKS.values())


def test_every_set_has_a_layout_and_is_compiled_in_both_families() -> None:
    compiled = {family: {one.name for one in tables.sets} for family, tables in load_base().families.items()}

    assert set(LAYOUTS) == set(SetName)
    assert compiled == {family: set(KERNEL_SETS) for family in Family}


@pytest.mark.parametrize("set_id", SETS, ids=lambda s: f"{s.family} {s.name}")
def test_a_layout_is_what_was_compiled(set_id: SetId) -> None:
    (compiled,) = (one for one in load_base().families[set_id.family].sets if one.name == set_id.name)
    attributes = {kind: value for kind, value in parse_attributes(compiled.attributes).items() if kind != COUNTER}
    counts = COUNTER in parse_attributes(compiled.attributes)
    numbers = {kind: parse_number(attributes.get(kind, b"")) for kind in (FLAGS, KEY_SIZE, DATA_TYPE, DATA_SIZE)}
    layout = LAYOUTS[set_id.name]

    assert numbers[KEY_SIZE] == key_bytes(set_id)
    assert bool(numbers[FLAGS] & INTERVAL) == layout.interval
    assert bool(numbers[FLAGS] & MAP) == (layout.data is not Data.NONE)
    assert (numbers[DATA_TYPE] == VERDICT_TYPE) == (layout.data is Data.VERDICT)
    assert counts == layout.counter
    if layout.data is Data.ENDPOINT:
        assert numbers[DATA_SIZE] == address_bytes(set_id.family) + 4
