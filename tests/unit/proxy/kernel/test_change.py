"""Changes as values: what is believed once the kernel agreed to one."""

from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import Family
from proxy.kernel.change import Change, Installed, KernelError, MapChange, apply_change
from proxy.kernel.ruleset import SetId, SetName
from tests.builders import change_between

SET = SetId(Family.IPV4, SetName.SERVICE_PORTS)
ELEMENTS = st.dictionaries(st.binary(min_size=1, max_size=2), st.sampled_from([b"drop", b"goto pick_1"]), max_size=8)


@given(ELEMENTS, ELEMENTS)
def test_a_change_applied_gives_the_desired_elements(
    installed: dict[bytes, bytes], desired: dict[bytes, bytes]
) -> None:
    believed = Installed(elements={SET: dict(installed)}, chains=set())

    apply_change(believed, change_between({SET: installed}, {SET: desired}))

    assert believed.elements[SET] == desired


def test_a_change_of_a_set_not_seen_before_is_remembered() -> None:
    believed = Installed(elements={}, chains=set())

    apply_change(believed, Change({SET: MapChange(delete={}, add={b"k": b"drop"})}))

    assert believed.elements == {SET: {b"k": b"drop"}}


def test_an_error_says_what_to_believe() -> None:
    refused, lost = KernelError("no"), KernelError("who knows", unknown=True)

    assert (str(refused), refused.unknown) == ("no", False)
    assert (str(lost), lost.unknown) == ("who knows", True)
