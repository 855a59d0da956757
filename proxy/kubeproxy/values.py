"""Fields by path: to set them from flags' texts, and to see which were set. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from proxy.config import ConfigError
from proxy.kubeproxy.fields import FIELDS
from proxy.kubeproxy.types import KubeProxyConfiguration, Section


def leaf_types(section: type[Section] = KubeProxyConfiguration, prefix: str = "") -> Iterator[tuple[str, object]]:
    """The path and type of each field that is no mapping of others."""
    for field in msgspec.structs.fields(section):
        path = prefix + field.encode_name
        if isinstance(field.type, type) and issubclass(field.type, Section):
            yield from leaf_types(field.type, f"{path}.")
        else:
            yield path, field.type


LEAVES: Mapping[str, object] = dict(leaf_types())


def set_flags(config: KubeProxyConfiguration, texts: Mapping[str, str]) -> KubeProxyConfiguration:
    """The configuration with the flags' values, by kube-proxy's names; ConfigError names the flag that is wrong."""
    for flag, text in texts.items():
        document = msgspec.to_builtins(config)
        for path in (field.path for field in FIELDS if field.flag == flag):
            _put(document, path, _read(flag, LEAVES[path], text))
        try:
            config = msgspec.convert(document, KubeProxyConfiguration, strict=False)
        except msgspec.ValidationError as error:
            what = str(error).partition(" - at ")[0].replace("`", "")
            raise ConfigError(f'{flag}: "{text}": {what}') from error
    return config


def _read(flag: str, kind: object, text: str) -> object:
    if kind == tuple[str, ...]:
        return [part.strip() for part in text.split(",") if part.strip()]
    if kind == dict[str, bool]:
        return _read_gates(flag, text)
    if flag == "--vmodule":
        pairs = (part.rpartition("=") for part in text.split(",") if part)
        return [{"filePattern": pattern, "verbosity": number} for pattern, _, number in pairs]
    return text


def _read_gates(flag: str, text: str) -> dict[str, str]:
    gates: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise ConfigError(f'{flag}: "{part}" has no value; write it as {name}=true')
        gates[name.strip()] = value.strip()
    return gates


def _put(document: Any, path: str, value: object) -> None:  # noqa: ANN401  # nested builtins
    *sections, name = path.split(".")
    for section in sections:
        document = document[section]
    document[name] = value


def get_field(config: KubeProxyConfiguration, path: str) -> object:
    """The value of a field."""
    value: Any = msgspec.to_builtins(config)
    for name in path.split("."):
        value = value[name]
    return value
