"""Changes as values: what is asked of the kernel, and what is believed once it agreed."""

from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import Family
from proxy.kernel.change import Change, Installed, KernelError, apply_change, diff_map
from proxy.kernel.ruleset import SetId, SetName

SET = SetId(Family.IPV4, SetName.SERVICE_PORTS)
ELEMENTS = st.dictionaries(st.binary(min_size=1, max_size=2), st.sampled_from([b"drop", b"goto pick_1"]), max_size=8)


@given(ELEMENTS, ELEMENTS)
def test_a_diff_applied_gives_the_desired_elements(installed: dict[bytes, bytes], desired: dict[bytes, bytes]) -> None:
    believed = Installed(elements={SET: dict(installed)}, chains=set())

    apply_change(believed, Change({SET: diff_map(installed, desired)}))

    assert believed.elements[SET] == desired


@given(ELEMENTS, ELEMENTS)
def test_a_diff_deletes_only_what_is_there_and_adds_only_what_is_not(
    installed: dict[bytes, bytes], desired: dict[bytes, bytes]
) -> None:
    change = diff_map(installed, desired)

    assert change.delete.items() <= installed.items()
    assert not change.add.items() & installed.items()
    assert all(key not in installed or key in change.delete for key in change.add)


@given(ELEMENTS)
def test_equal_elements_need_no_change(elements: dict[bytes, bytes]) -> None:
    change = diff_map(elements, dict(elements))

    assert not change.delete
    assert not change.add


def test_a_change_of_a_set_not_seen_before_is_remembered() -> None:
    believed = Installed(elements={}, chains=set())

    apply_change(believed, Change({SET: diff_map({}, {b"k": b"drop"})}))

    assert believed.elements == {SET: {b"k": b"drop"}}


def test_an_error_says_what_to_believe() -> None:
    refused, lost = KernelError("no"), KernelError("who knows", unknown=True)

    assert (str(refused), refused.unknown) == ("no", False)
    assert (str(lost), lost.unknown) == ("who knows", True)
