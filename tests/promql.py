"""The metrics that a PromQL expression names: enough of its grammar for rules and dashboards."""

import re

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SELECTOR = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^()]*\)")
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_WORDS = {"and", "or", "unless", "bool", "offset"}


def metric_names(expression: str) -> set[str]:
    """Names of series, as they stand: `x_bucket`, `x_total`. Functions, labels and durations aren't among them."""
    bare = _GROUPING.sub(" ", _SELECTOR.sub(" ", _STRING.sub(" ", expression)))
    return {
        match[0]
        for match in _NAME.finditer(bare)
        if match[0] not in _WORDS
        and not re.match(r"\s*\(", bare[match.end() :])
        and not _is_number(bare, match.start())
    }


def _is_number(text: str, start: int) -> bool:
    return start > 0 and text[start - 1].isdecimal()
