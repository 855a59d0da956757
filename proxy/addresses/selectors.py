"""LabelSelectors (meta/v1): parsed and matched. None stands for those that aren't given; an empty one matches all."""

from collections.abc import Iterable, Mapping

from endpointslice.types import Labels
from proxy.addresses.types import Operator, Problem, Requirement, Selector
from proxy.addresses.wire import LabelSelector

_OPERATORS = {operator.value: operator for operator in Operator}
_WITH_VALUES = frozenset({Operator.IN, Operator.NOT_IN})


def read_selectors(
    field: str, wires: Iterable[LabelSelector] | None, problems: list[Problem]
) -> tuple[Selector, ...] | None:
    """Each selector; what is wrong is added to `problems`. None and an empty list are both "not given" in Go's API."""
    if not wires:
        return None
    selectors: list[Selector] = []
    for index, wire in enumerate(wires):
        selector = read_selector(f"{field}[{index}]", wire, problems)
        if selector in selectors:
            problems.append(Problem(f"{field}[{index}]", "repeats an earlier selector"))
        selectors.append(selector)
    return tuple(selectors)


def read_selector(field: str, wire: LabelSelector, problems: list[Problem]) -> Selector:
    """The selector, its terms in a fixed order, so that equal ones are equal values."""
    terms = {Requirement(key, Operator.IN, frozenset({value})) for key, value in (wire.match_labels or {}).items()}
    for index, term in enumerate(wire.match_expressions or ()):
        where = f"{field}.matchExpressions[{index}]"
        operator = _OPERATORS.get(term.operator)
        values = term.values or []
        if operator is None:
            problems.append(Problem(f"{where}.operator", f'"{term.operator}" is none of {", ".join(_OPERATORS)}'))
            continue
        if not term.key:
            problems.append(Problem(f"{where}.key", "none given"))
        if bool(values) is not (operator in _WITH_VALUES):
            problems.append(Problem(f"{where}.values", f"{operator} takes {'no' if values else 'at least one'} value"))
        if len(set(values)) != len(values):
            problems.append(Problem(f"{where}.values", "a value is repeated"))
        terms.add(Requirement(term.key, operator, frozenset(values)))
    return tuple(sorted(terms, key=lambda term: (term.key, term.operator, sorted(term.values))))


def matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether every term holds; NotIn and DoesNotExist hold where the label is absent, as in Kubernetes."""
    return all(_holds(term, labels) for term in selector)


def matches_any(selectors: Iterable[Selector], labels: Labels) -> bool:
    """Whether one of them matches; False where there is none: what selects nothing allows nothing."""
    held = dict(labels)
    return any(matches(selector, held) for selector in selectors)


def _holds(term: Requirement, labels: Mapping[str, str]) -> bool:
    match term.operator:
        case Operator.IN:
            return labels.get(term.key) in term.values
        case Operator.NOT_IN:
            return labels.get(term.key) not in term.values
        case Operator.EXISTS:
            return term.key in labels
        case Operator.DOES_NOT_EXIST:
            return term.key not in labels
