"""The list of scenarios."""

from e2e.lan.baseline import GIVEN
from e2e.lan.scenarios import BY_FLAG, BY_NAME, SCENARIOS


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(BY_FLAG) == len(SCENARIOS)


def test_a_flag_has_no_spaces() -> None:
    assert {"node-lost", "owner-s-mac-changes"} <= set(BY_FLAG)
    assert not [flag for flag in BY_FLAG if set(flag) & set(" ,'")]


def test_what_is_given_of_metallb_has_a_row_to_stand_in() -> None:
    rows = {(scenario.name, figure) for scenario in SCENARIOS for figure, _ in scenario.wanted}

    assert set(GIVEN) <= rows
