"""kube-proxy's flags as options of `closeby run`, made from the table of its fields."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from proxy.cli.options import same_node_option
from proxy.config import ConfigError
from proxy.kubeproxy.fields import FIELDS, Use
from proxy.kubeproxy.values import LEAVES

F = TypeVar("F", bound=Callable[..., Any])

_OF_RUN = {"--v", "--hostname-override"}  # that `run` declares by itself
_SERVERS = {"healthz": "healthzBindAddress", "metrics": "metricsBindAddress"}
_FIELDS = {field.flag: field for field in FIELDS if field.flag}  # nftables' come last
# The flags whose values decide where traffic goes, and the settings that each gives.
SETTINGS: dict[str, tuple[str, ...]] = {
    "--cluster-cidr": ("cluster_cidrs",),
    "--detect-local-mode": ("detect", "interface"),
    "--pod-bridge-interface": ("interface",),
    "--pod-interface-name-prefix": ("interface",),
    "--masquerade-all": ("masquerade_all",),
    "--nodeport-addresses": ("node_port_addresses",),
    "--bind-address": ("own_addresses",),
    "--feature-gates": ("external_ips",),
}
_DOING_NOTHING = "Taken from kube-proxy's command lines: "


def kube_proxy_options(command: F) -> F:
    """Every flag that a field of KubeProxyConfiguration has; those that do nothing here are hidden from --help."""
    for server in _SERVERS:
        port = f"--{server}-port"
        command = click.option(port, hidden=True, help="Deprecated: only the port; 0 turns it off.")(command)
    for flag in reversed([flag for flag in _FIELDS if flag not in _OF_RUN]):
        command = _option(flag)(command)
    return command


def settings_options(command: F) -> F:
    """What of kube-proxy's configuration decides where traffic goes, for the commands that only look."""
    for flag in reversed(SETTINGS):
        command = _option(flag)(command)
    return config_option("Take kube-proxy's settings from this KubeProxyConfiguration.")(same_node_option(command))


def config_option(says: str) -> Callable[[F], F]:
    """--config."""
    return click.option("--config", "config_file", type=click.Path(path_type=Path), metavar="FILE", help=says)


def _option(flag: str) -> Callable[[F], F]:
    field = _FIELDS[flag]
    kind = LEAVES[field.path]
    ignored = field.use is Use.IGNORED
    says = field.says[0].upper() + field.says[1:] if not ignored else _DOING_NOTHING + field.says
    default = f"  [default: {field.default}]" if field.default else ""
    # As Go: --masquerade-all and --masquerade-all=false. Elsewhere it would refuse --oom-score-adj=-5.
    switch: dict[str, Any] = {"is_flag": False, "flag_value": "true"} if kind is bool else {}
    return click.option(
        flag,
        multiple=kind == tuple[str, ...],
        metavar=_metavar(kind),
        hidden=ignored,
        help=says.replace("`", "") + default,
        **switch,
    )


def _metavar(kind: object) -> str:
    if kind is bool:
        return "[true|false]"
    return "NUMBER" if kind in {int, float} else "LIST" if kind == tuple[str, ...] else "TEXT"


def flag_texts(flags: Mapping[str, object]) -> dict[str, str]:
    """kube-proxy's flags that were given, by name, from the command's parameters."""
    texts: dict[str, str] = {}
    for flag in dict.fromkeys(field.flag for field in FIELDS if field.flag):
        value = flags.get(_parameter(flag))
        if isinstance(value, tuple):
            value = ",".join(value) if value else None
        if isinstance(value, str):
            texts[flag] = value
    return texts


def read_ports(flags: Mapping[str, object], texts: dict[str, str]) -> frozenset[str]:
    """The servers' fields that flags turn off: by an empty address, or by a deprecated port 0.

    Another port is put into `texts`, to an address that has none. ConfigError names the flag.
    """
    turned_off = {path for server, path in _SERVERS.items() if texts.get(f"--{server}-bind-address") == ""}
    for server, path in _SERVERS.items():
        port = flags.get(f"{server}_port")
        if not isinstance(port, str):
            continue
        if not port.isdecimal() or int(port) > 65535:  # noqa: PLR2004  # the last port
            raise ConfigError(f'--{server}-port: "{port}" is not a port')
        if int(port) == 0:
            turned_off.add(path)
        elif f"--{server}-bind-address" not in texts:
            texts[f"--{server}-bind-address"] = f"{'0.0.0.0' if server == 'healthz' else '127.0.0.1'}:{port}"
    return frozenset(turned_off)


def _parameter(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def read_file(file: Path) -> bytes:
    """What the file of --config holds; ConfigError if it can't be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"--config: {file}: {error.strerror}") from error
