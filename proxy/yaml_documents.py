"""YAML as kubectl reads it, in bounded time and memory. Pure; what can't be read is a YamlError, whatever it is.

Unlike PyYAML's own loader: a timestamp or a number with colons (YAML 1.1's base 60) without quotes is text, and a few
lines of nested aliases or merge keys, which stand for billions of values, are refused.
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml
from yaml.constructor import ConstructorError
from yaml.nodes import MappingNode, Node, SequenceNode

_CLoader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML may be built without libyaml
_TAG = "tag:yaml.org,2002:"
_SPARE_VALUES = 100_000  # that aliases and merge keys may add; without them a document has fewer values than bytes
_SHOWN = 40  # characters of a value that is refused
_INT = re.compile(r"^[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$")
_FLOAT = re.compile(
    r"^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)


class YamlError(ValueError):
    """Content that isn't YAML, or too much of it; one line, with the place where it is known."""


class _Loader(_CLoader):  # type: ignore[misc]  # a class chosen at run time
    """Counts what merge keys copy, and turns every failure of PyYAML's constructors into one of theirs."""

    # PyYAML's own attributes; the last two are set once its class is made
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {  # noqa: RUF012
        first: [
            (tag, pattern) for tag, pattern in resolvers if tag.removeprefix(_TAG) not in {"timestamp", "int", "float"}
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self._left = len(content) + _SPARE_VALUES

    def construct_object(self, node: Node, deep: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002  # as PyYAML's
        if node.tag in {_TAG + "int", _TAG + "float"} and ":" in node.value:
            raise _refuse(node)
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, ArithmeticError, AttributeError) as error:  # such as of !!bool maybe
            raise _refuse(node) from error

    def flatten_mapping(self, node: MappingNode) -> None:
        for key, value in node.value:
            if key.tag != _TAG + "merge":
                continue
            for part in value.value if isinstance(value, SequenceNode) else [value]:
                if isinstance(part, MappingNode):
                    self.flatten_mapping(part)
                    self._left -= len(part.value)
            if self._left < 0:
                raise ConstructorError(None, None, "merge keys stand for too many values", node.start_mark)
        super().flatten_mapping(node)


_Loader.add_implicit_resolver(_TAG + "int", _INT, list("-+0123456789"))
_Loader.add_implicit_resolver(_TAG + "float", _FLOAT, list("-+0123456789."))


def _refuse(node: Node) -> ConstructorError:
    text = node.value[:_SHOWN] if isinstance(node.value, str) else ""
    return ConstructorError(None, None, f"{text!r} is no {node.tag.removeprefix(_TAG)}", node.start_mark)


def iter_yaml(content: bytes) -> Iterator[object]:
    """Each document's value, None for an empty one; YamlError ends it, since where the next begins can't be told."""
    try:
        loader = _Loader(content)
        while loader.check_data():
            value = loader.get_data()
            if not _has_at_most(len(content) + _SPARE_VALUES, value):
                raise YamlError("aliases stand for too many values")
            yield value
    except yaml.YAMLError as error:
        raise YamlError(_one_line(error)) from error
    except RecursionError as error:
        raise YamlError("nested too deep") from error


def compose_yaml(content: bytes) -> Node | None:
    """The nodes of the one document, each with its line, None for an empty one; for content that `iter_yaml` took."""
    try:
        node: Node | None = _Loader(content).get_single_node()
    except yaml.YAMLError as error:
        raise YamlError(_one_line(error)) from error
    return node


def _has_at_most(limit: int, value: object) -> bool:
    """Whether the value, every alias written out, has no more values than this."""
    left, stack = limit, [value]
    while stack:
        part = stack.pop()
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list | set) else ()
        left -= len(inner)
        if left < 0:
            return False
        stack.extend(inner)
    return True


def _one_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    place = f"line {mark.line + 1} column {mark.column + 1}: " if mark else ""
    return place + " ".join(str(getattr(error, "problem", None) or error).split())
