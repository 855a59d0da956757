"""The configuration file: its text to typed values and back. Mistakes are told by line and field."""

import difflib
import re
from itertools import islice
from typing import Any

import msgspec
import yaml

from proxy.config import ConfigError
from proxy.kubeproxy.types import API_VERSION, KIND, KubeProxyConfiguration, Section
from proxy.yaml_documents import YamlError, compose_yaml, iter_yaml

MAX_BYTES = 1 << 20  # what a ConfigMap can hold
_PATH = re.compile(r"^(.*) - at `\$([^`]*)`$", re.DOTALL)


class _MistakeError(Exception):
    """What is wrong, and in which line."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")


def parse_config(name: str, content: bytes) -> KubeProxyConfiguration:
    """The file's fields; a null counts as absent, as in Go. ConfigError names the file, the line and the field.

    Stricter than kube-proxy, which only warns of an unknown or repeated field: a misspelt setting has no effect there.
    """
    try:
        return _parse(content)
    except _MistakeError as error:
        raise ConfigError(f"--config: {name}: {error}") from error
    except YamlError as error:
        raise ConfigError(f"--config: {name}: not YAML or JSON: {error}") from error


def _parse(content: bytes) -> KubeProxyConfiguration:
    if len(content) > MAX_BYTES:
        raise _MistakeError(1, f"larger than {MAX_BYTES} bytes")
    if content.lstrip().startswith(b"{"):
        content = content.replace(b"\t", b" ")  # JSON's white space, which YAML doesn't take; no JSON text holds one
    documents = tuple(islice(iter_yaml(content), 2))
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise _MistakeError(1, f"no {KIND}: the file must hold one mapping")
    root = compose_yaml(content)  # the same once more, with the line of every field
    if not isinstance(root, yaml.MappingNode):  # as it is, by its value
        raise _MistakeError(1, "no mapping")
    _check_kind(root)
    _check_names(root, KubeProxyConfiguration, "")
    document = _drop_nulls(documents[0], KubeProxyConfiguration)
    try:
        return msgspec.convert(document, KubeProxyConfiguration)
    except msgspec.ValidationError as error:
        what, path = _split(str(error))
        raise _MistakeError(_find_line(root, path), f"{path}: {what}") from error


def _split(message: str) -> tuple[str, str]:
    """What is wrong, and the field's path."""
    match = _PATH.match(message)
    what, path = (match[1], match[2].lstrip(".")) if match else (message, "")
    return what.replace("`", ""), path


def _check_kind(root: yaml.MappingNode) -> None:
    for field, wanted in (("kind", KIND), ("apiVersion", API_VERSION)):
        node = next((value for key, value in root.value if key.value == field), None)
        if node is None:
            raise _MistakeError(1, f"no {field}: it must be {wanted}")
        if node.value == "ConfigMap":
            raise _MistakeError(_line(node), "this is a ConfigMap: give what its data holds, such as config.conf")
        if node.value != wanted:
            raise _MistakeError(_line(node), f"{field} is {node.value}, and must be {wanted}")


def _check_names(node: yaml.Node, section: type[Section], path: str) -> None:
    """_MistakeError at the first unknown or repeated field."""
    if not isinstance(node, yaml.MappingNode):
        return  # of another type than it should be, which the conversion tells
    sections = {field.encode_name: _section(field.type) for field in msgspec.structs.fields(section)}
    seen: dict[str, int] = {}
    for key, value in node.value:
        name = str(key.value)
        if name not in sections:
            near = difflib.get_close_matches(name, sections, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise _MistakeError(_line(key), f'unknown field "{path}{name}"{hint}')
        if name in seen:
            raise _MistakeError(_line(key), f'field "{path}{name}" is in line {seen[name]} already')
        seen[name] = _line(key)
        if (inner := sections[name]) is not None:
            _check_names(value, inner, f"{path}{name}.")


def _drop_nulls(document: Any, section: type[Section]) -> Any:  # noqa: ANN401  # what YAML gave, of any type
    if not isinstance(document, dict):
        return document
    sections = {field.encode_name: _section(field.type) for field in msgspec.structs.fields(section)}
    return {
        name: value if (inner := sections.get(name)) is None else _drop_nulls(value, inner)
        for name, value in document.items()
        if value is not None
    }


def _section(kind: object) -> type[Section] | None:
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _find_line(node: yaml.Node, path: str) -> int:
    """The line of a field such as conntrack.min or nodePortAddresses[0]; of the nearest above where there is none."""
    line = _line(node)
    for name in re.split(r"[.\[]", path):
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        found = next(((key, value) for key, value in pairs if key.value == name), None)
        if found is None:
            break
        line, node = _line(found[0]), found[1]
    return line


def _line(node: yaml.Node) -> int:
    line: int = node.start_mark.line
    return line + 1


def render_config(config: KubeProxyConfiguration) -> str:
    """YAML that `parse_config` reads back as the same value."""
    text: str = yaml.safe_dump(msgspec.to_builtins(config), sort_keys=True, allow_unicode=True)
    return text
