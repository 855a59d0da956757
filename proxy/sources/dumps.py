"""EFFECT: a dump, as `closeby dump` writes it, read back: kubectl's List in JSON, with a key "closeby" beside it."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from endpointslice.decode import UNREADABLE, Changed, convert_document
from proxy.config import ConfigError


class Dump(NamedTuple):
    """The content of a dump."""

    changes: tuple[Changed, ...]
    facts: dict[str, Any]  # the value of "closeby"; {} in what `kubectl get -o json` wrote


class _File(msgspec.Struct, frozen=True):
    items: list[Any]
    closeby: dict[str, Any] = {}


def load_dump(path: Path) -> Dump:
    """The objects of a dump and what closeby says in it beside them. ConfigError names the file and the field."""
    where = f"--dump {path}"
    try:
        return parse_dump(path.read_bytes(), where)
    except OSError as error:
        raise ConfigError(f"{where}: {error.strerror}") from error


def parse_dump(body: bytes, where: str) -> Dump:
    """As `load_dump`, of a dump's bytes; `where` names them in a ConfigError."""
    try:
        content = msgspec.json.decode(body, type=_File)
    except UNREADABLE as error:
        raise ConfigError(f"{where}: not a dump: {error}") from error
    return Dump(convert_document({"kind": "List", "items": content.items}), content.closeby)
