import pytest

from proxy.addresses.selectors import matches, matches_any
from proxy.addresses.types import Operator, Requirement

IN = Requirement("tier", Operator.IN, frozenset({"a", "b"}))
NOT_IN = Requirement("tier", Operator.NOT_IN, frozenset({"a", "b"}))
EXISTS = Requirement("tier", Operator.EXISTS)
ABSENT = Requirement("tier", Operator.DOES_NOT_EXIST)


@pytest.mark.parametrize(
    ("labels", "holding"),
    [
        ({"tier": "a"}, [IN, EXISTS]),
        ({"tier": "c"}, [NOT_IN, EXISTS]),
        ({}, [NOT_IN, ABSENT]),
    ],
)
def test_which_terms_hold(labels: dict[str, str], holding: list[Requirement]) -> None:
    assert [term for term in (IN, NOT_IN, EXISTS, ABSENT) if matches((term,), labels)] == holding


def test_an_empty_selector_matches_everything_and_no_selector_nothing() -> None:
    assert matches_any([()], frozenset())
    assert not matches_any([], frozenset({("a", "b")}))


def test_every_term_must_hold() -> None:
    assert not matches((IN, ABSENT), {"tier": "a"})
