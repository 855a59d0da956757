"""What should be in the kernel, and the change that brings it there."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.topology import Tier
from endpointslice.types import Family, ServiceName
from proxy.kernel.change import Change, Installed, MapChange, apply_change
from proxy.kernel.ruleset import SetId, SetName
from proxy.planner.desired import Desired
from proxy.planner.fragments import Fragment, Label, Rendered

PORTS = SetId(Family.IPV4, SetName.SERVICE_PORTS)
HAIRPIN = SetId(Family.IPV4, SetName.HAIRPIN)
KEY = b"vip"
Parts = Mapping[SetId, Mapping[bytes, bytes]]


def label(service: str = "default/web", tier: Tier = Tier.CLUSTER) -> Label:
    return Label(ServiceName(service), "http", tier)


def part(owner: str, fragment: Fragment, of: Label | None = None) -> Rendered:
    return Rendered(owner, fragment, {(PORTS, KEY): of} if of is not None else {})


def port_of(owner: str, data: bytes, tier: Tier = Tier.CLUSTER) -> Rendered:
    """A Service whose only element is the verdict for KEY."""
    return part(owner, {PORTS: {KEY: data}}, label(owner, tier))


def replace(desired: Desired, *rendered: Rendered, gone: tuple[str, ...] = ()) -> None:
    desired.replace({*gone, *(one.owner for one in rendered)}, rendered)


def commit(desired: Desired, installed: Installed) -> Change:
    """What a kernel that agrees does; the change it was asked for."""
    change = desired.pending(installed.elements)
    apply_change(installed, change)
    desired.confirm()
    return change


def without_empty(elements: Parts) -> Parts:
    return {set_id: dict(part) for set_id, part in elements.items() if part}


def test_a_key_changes_hands_within_one_update_whoever_is_rendered_first() -> None:
    for order in ((1, -1), (-1, 1)):
        desired, installed = Desired(), Installed({}, set())
        replace(desired, port_of("default/a", b"goto pick_1"), part("default/b", {}))
        commit(desired, installed)

        replace(desired, *[part("default/a", {}), port_of("default/b", b"goto pick_2")][:: order[0]])
        change = commit(desired, installed)

        assert change == Change({PORTS: MapChange({KEY: b"goto pick_1"}, {KEY: b"goto pick_2"})})
        assert desired.labels == {(PORTS, KEY): label("default/b")}


def test_a_shared_element_goes_with_the_last_of_its_owners() -> None:
    desired, installed = Desired(), Installed({}, set())
    pod = {HAIRPIN: {b"pod": b""}}
    replace(desired, part("a", pod), part("b", pod), part("c", pod))
    commit(desired, installed)

    for owner in ("b", "a"):
        replace(desired, gone=(owner,))
        assert commit(desired, installed) == Change({})
        assert installed.elements[HAIRPIN] == {b"pod": b""}
    replace(desired, gone=("c",))

    assert commit(desired, installed) == Change({HAIRPIN: MapChange({b"pod": b""}, {})})


def test_nothing_is_pending_after_equal_elements() -> None:
    desired, installed = Desired(), Installed({}, set())
    replace(desired, port_of("a", b"goto pick_1"))
    commit(desired, installed)

    replace(desired, port_of("a", b"goto pick_1"))

    assert desired.pending(installed.elements) == Change({})


@pytest.mark.parametrize(
    ("steps", "replaced"),
    [
        pytest.param([Tier.CLUSTER], False, id="the same tier: the counter goes on"),
        pytest.param([Tier.SAME_ZONE], True, id="another tier: it starts anew, and the old sum is told"),
        pytest.param([Tier.SAME_ZONE, Tier.SAME_NODE], True, id="two tiers on, neither in the kernel"),
        pytest.param([Tier.SAME_ZONE, Tier.CLUSTER], False, id="there and back, before the kernel agreed"),
        pytest.param([None, Tier.SAME_ZONE], True, id="gone and back with another, before it agreed"),
    ],
)
def test_a_counter_that_means_something_else_starts_anew(steps: list[Tier | None], *, replaced: bool) -> None:
    desired, installed = Desired(), Installed({}, set())
    replace(desired, port_of("default/web", b"goto pick_1"))
    commit(desired, installed)

    for tier in steps:
        replace(desired, *([port_of("default/web", b"goto pick_1", tier)] if tier else []), gone=("default/web",))
    change = desired.pending(installed.elements)

    expected = MapChange({KEY: b"goto pick_1"}, {KEY: b"goto pick_1"})
    assert change == Change({PORTS: expected} if replaced else {})
    assert desired.counted((PORTS, KEY)) == label(tier=Tier.CLUSTER)
    desired.confirm()
    assert desired.counted((PORTS, KEY)) == desired.labels[PORTS, KEY]


def test_labels_that_were_handed_out_stay_as_they_were() -> None:
    desired = Desired()
    replace(desired, port_of("default/web", b"goto pick_1"))
    before = desired.labels

    replace(desired, port_of("default/web", b"goto pick_1", Tier.SAME_NODE))

    assert before == {(PORTS, KEY): label()}
    assert desired.labels == {(PORTS, KEY): label(tier=Tier.SAME_NODE)}


def test_the_label_of_what_is_gone_is_known_until_the_kernel_agreed() -> None:
    desired, installed = Desired(), Installed({}, set())
    replace(desired, port_of("default/web", b"goto pick_1"))
    commit(desired, installed)

    replace(desired, gone=("default/web",))

    assert desired.labels == {}
    assert desired.counted((PORTS, KEY)) == label()
    commit(desired, installed)
    assert desired.counted((PORTS, KEY)) is None


def test_what_a_stranger_did_is_undone_once_it_is_doubted() -> None:
    desired, installed = Desired(), Installed({}, set())
    replace(desired, part("a", {PORTS: {b"1": b"drop", b"2": b"drop", b"3": b"drop"}}))
    commit(desired, installed)
    found = {PORTS: {b"1": b"drop", b"2": b"goto pick_9", b"9": b"drop"}, HAIRPIN: {b"x": b""}}

    assert desired.pending(found) == Change({})
    desired.doubt(found)

    assert desired.pending(found) == Change(
        {
            HAIRPIN: MapChange({b"x": b""}, {}),
            PORTS: MapChange({b"2": b"goto pick_9", b"9": b"drop"}, {b"2": b"drop", b"3": b"drop"}),
        }
    )


# Plain sets may share keys between owners; a map's keys belong to one owner, here by the key's first letter.
_owners = st.sampled_from(["a", "b", "c"])
_shared = st.dictionaries(st.sampled_from([b"x", b"y", b"z"]), st.just(b""))
_maps = st.dictionaries(st.sampled_from([b"1", b"2", b"3"]), st.sampled_from([b"drop", b"goto pick_1"]))
_steps = st.lists(st.tuples(st.dictionaries(_owners, st.tuples(_shared, _maps), max_size=3), st.booleans()), max_size=6)


@given(_steps)
def test_after_any_updates_the_kernel_holds_the_union_of_the_last_elements(
    steps: list[tuple[dict[str, tuple[dict[bytes, bytes], dict[bytes, bytes]]], bool]],
) -> None:
    desired, installed = Desired(), Installed({}, set())
    last: dict[str, Fragment] = {}
    for updates, agreed in steps:
        for owner, (shared, of_map) in updates.items():
            last[owner] = {
                HAIRPIN: shared,
                PORTS: {owner.encode() + key: data for key, data in of_map.items()},
            }
        replace(desired, *[Rendered(owner, last[owner], {}) for owner in updates])
        if agreed:
            commit(desired, installed)
    commit(desired, installed)

    union: dict[SetId, dict[bytes, bytes]] = {}
    for fragment in last.values():
        for set_id, elements in fragment.items():
            union.setdefault(set_id, {}).update(elements)
    assert without_empty(installed.elements) == without_empty(union) == without_empty(desired.elements)
