"""How `plan`, `explain` and `dump` get what they show; not among the flags, as `run` needn't import all sources."""

from pathlib import Path
from typing import Any

import click
import msgspec

from endpointslice.daemonsets import Mode
from endpointslice.external_ips import without_external_ips
from proxy.cli.kube_proxy import SETTINGS, flag_texts, read_file
from proxy.cli.options import DEFAULT_SOCKET, F, source_options
from proxy.config import ConfigError, check_sources
from proxy.kubeproxy.configure import Naming, Own, build_config, name_by_flag, name_in_file
from proxy.kubeproxy.types import KubeProxyConfiguration
from proxy.kubeproxy.values import set_flags
from proxy.logs import QUIET, set_up_logs
from proxy.offline import Loaded, Wanted, load
from proxy.planner.settings import Settings


def load_options(command: F) -> F:
    """Sources that are read once: those of `run`, a dump, and the running daemon."""
    dump = click.option(
        "--dump", "dump_file", type=click.Path(path_type=Path), help="Read what `closeby dump` wrote to this file."
    )
    control = click.option(
        "--control-socket",
        type=click.Path(path_type=Path),
        default=DEFAULT_SOCKET,
        show_default=True,
        help="Without another source: the running daemon's.",
    )
    return source_options(dump(control(command)))


def check_flags(flags: dict[str, Any]) -> None:
    """ConfigError for flags and files that `load_state` would refuse before it reads a source."""
    _read_settings(flags)
    check_sources(flags["manifests"], flags["kubeconfig"])


def load_state(flags: dict[str, Any]) -> tuple[Loaded, Settings]:
    """The Snapshot, and the settings: those of the flags that were given, else those that the source brought along."""
    settings, given = _read_settings(flags)
    check_sources(flags["manifests"], flags["kubeconfig"])
    wanted = Wanted(flags["manifests"], flags["dump_file"], flags["kubeconfig"], flags["control_socket"])
    set_up_logs(QUIET, "console")  # on stderr: what is printed is the answer, for a program to read
    loaded = load(wanted, settings.node)
    if loaded.settings is not None:
        settings = msgspec.structs.replace(loaded.settings, **{name: getattr(settings, name) for name in given})
    if not settings.external_ips:
        loaded = loaded._replace(snapshot=without_external_ips(loaded.snapshot))
    return loaded, settings


def _read_settings(flags: dict[str, Any]) -> tuple[Settings, set[str]]:
    """The settings of the flags or of --config's file, and which of them were given."""
    file: Path | None = flags["config_file"]
    texts = {flag: text for flag, text in flag_texts(flags).items() if flag in SETTINGS}
    own = Own(hostname_override=flags["node"], same_node=Mode(flags["same_node_for_daemon_sets"]))
    if file is None:
        config = set_flags(KubeProxyConfiguration(), texts)
        name: Naming = name_by_flag
        given = {field for flag in texts for field in SETTINGS[flag]}
    else:
        from proxy.kubeproxy.file import parse_config  # noqa: PLC0415  # flags alone need no YAML

        if texts:
            raise ConfigError(f"{min(texts)}: --config is given, which holds this")
        config, name = parse_config(str(file), read_file(file)), name_in_file(file)
        given = {field for fields in SETTINGS.values() for field in fields}
    if flags["node"] or config.hostname_override:
        given.add("node")
    context = click.get_current_context()
    if context.get_parameter_source("same_node_for_daemon_sets") is not click.core.ParameterSource.DEFAULT:
        given.add("same_node")
    return build_config(config, own, name).settings, given
