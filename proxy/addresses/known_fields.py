"""Fields of a manifest that nobody reads: the API server drops them, so a misspelt one has no effect. Pure."""

import difflib
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from proxy.addresses.types import Problem


def find_unknown(value: object, wire: type[msgspec.Struct], field: str) -> Iterator[Problem]:
    """A Problem for each field that the wire's type lacks, at any depth, with the name that may have been meant."""
    if not isinstance(value, Mapping):
        return
    known = {part.encode_name: part.type for part in msgspec.structs.fields(wire)}
    for name, inner in value.items():
        path = f"{field}.{name}"
        if name not in known:
            yield Problem(path, f"there is no such field{suggest(str(name), known)}")
            continue
        yield from _look_into(inner, known[name], path)


def _look_into(value: object, annotation: Any, path: str) -> Iterator[Problem]:  # noqa: ANN401  # what a type is written as
    for part in typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,):
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            yield from find_unknown(value, part, path)
        elif typing.get_origin(part) is list and isinstance(value, list):
            for index, item in enumerate(value):
                yield from _look_into(item, typing.get_args(part)[0], f"{path}[{index}]")


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence: which name may have been meant; "" if none is close."""
    close = difflib.get_close_matches(name, [*known], 1)
    return f'; did you mean "{close[0]}"?' if close else ""
