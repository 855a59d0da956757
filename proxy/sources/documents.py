"""One manifest file: bytes to documents to changes, and what is wrong with it. Pure.

A file counts as a whole: while a version of it is broken in any document, the last whole version stays in force. A file
that was never whole is used as far as its documents are good.
"""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import PurePath
from typing import Any, NamedTuple

import msgspec

from endpointslice.decode import UNREADABLE, Changed, convert_document
from endpointslice.reasons import Reason
from endpointslice.types import Skipped
from proxy.sources.derive import Ingredient, read_ingredient
from proxy.yaml_documents import YamlError, iter_yaml


class Wrong(StrEnum):
    """Codes of `Skipped.reason` for what is wrong with files; Reason has those for objects."""

    BAD_SYNTAX = "bad-syntax"
    NOT_AN_OBJECT = "not-an-object"  # a document without kind, or no mapping at all
    EMPTY_FILE = "empty-file"
    UNREADABLE_FILE = "unreadable-file"
    TOO_LARGE = "too-large"
    NO_FOLDER = "no-folder"
    REPEATED_OBJECT = "repeated-object"  # also in an earlier file or document


class Manifest(msgspec.Struct, frozen=True):
    """What one file holds."""

    path: str  # relative to the folder, with "/"
    changes: tuple[Changed, ...] = ()
    ingredients: tuple[Ingredient, ...] = ()  # slices may be derived from them
    problems: tuple[Skipped, ...] = ()  # of the newest version
    whole: bool = False  # the changes are those of a version without problems


class _Document(NamedTuple):
    number: int  # within its file, from 1
    value: object


class _Broken(NamedTuple):
    number: int
    detail: str


def parse_manifest(path: str, content: bytes) -> Manifest:
    """The file's good documents and what is wrong with the others; `path` tells JSON from YAML by its ending."""
    if not content.strip():
        # As an editor leaves a file between truncating and writing it. To take objects away, remove the file.
        return refuse_file(path, Wrong.EMPTY_FILE, "")
    parse = _parse_json if PurePath(path).suffix == ".json" else _parse_yaml
    changes: list[Changed] = []
    ingredients: list[Ingredient] = []
    problems: list[Skipped] = []
    for part in parse(content):
        where = f"{path} document {part.number}"
        if isinstance(part, _Broken):
            problems.append(Skipped(where, Wrong.BAD_SYNTAX, part.detail))
        elif not isinstance(part.value, dict) or not isinstance(part.value.get("kind"), str):
            problems.append(Skipped(where, Wrong.NOT_AN_OBJECT, "no mapping with a kind"))
        else:
            ingredients += filter(None, map(read_ingredient, flatten_document(part.value)))
            for change in convert_document(part.value):
                bad = [skip for skip in change.skipped if skip.reason == Reason.BAD_OBJECT]
                problems += [Skipped(f"{where}: {skip.object}", skip.reason, skip.detail) for skip in bad]
                if not bad:
                    changes.append(change)
    return Manifest(path, tuple(changes), tuple(ingredients), tuple(problems), whole=not problems)


def refuse_file(path: str, wrong: Wrong, detail: str) -> Manifest:
    """A file of which nothing can be used."""
    return Manifest(path, problems=(Skipped(path, wrong, detail),))


def keep_good(last: Manifest | None, new: Manifest) -> Manifest:
    """The new version, or the last whole one with the new one's problems."""
    if new.whole or last is None or not last.whole:
        return new
    return msgspec.structs.replace(last, problems=new.problems)


def flatten_document(document: dict[str, Any]) -> Iterator[object]:
    """The document, or the items of a List; those of a ServiceList need not say their kind."""
    kind, items = str(document.get("kind")), document.get("items")
    if kind.endswith("List") and isinstance(items, list):
        yield from ({"kind": kind.removesuffix("List"), **item} for item in items if isinstance(item, dict))
    else:
        yield document


def _parse_json(content: bytes) -> Iterator[_Document | _Broken]:
    try:
        yield _Document(1, msgspec.json.decode(content))
    except UNREADABLE as error:
        yield _Broken(1, str(error))


def _parse_yaml(content: bytes) -> Iterator[_Document | _Broken]:
    """Documents up to the first that can't be read. One with nothing or comments in it is counted and left out."""
    number = 0
    try:
        for number, value in enumerate(
            iter_yaml(content), 1
        ):  # the last number is that of the document before a broken one
            if value is not None:
                yield _Document(number, value)
    except YamlError as error:
        yield _Broken(number + 1, str(error))
