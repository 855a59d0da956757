"""How `plan`, `explain` and `dump` get what they show; not among the flags, as `run` needn't import all sources."""

from pathlib import Path
from typing import Any

import click
import msgspec

from proxy.cli.options import DEFAULT_SOCKET, F, build_settings, source_options
from proxy.config import check_sources
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


def load_state(flags: dict[str, Any]) -> tuple[Loaded, Settings]:
    """The Snapshot, and the settings: those of the flags that were given, else those that the source brought along."""
    context = click.get_current_context()
    settings = build_settings(
        flags["node"],
        cluster_cidr=flags["cluster_cidr"],
        nodeport_addresses=flags["nodeport_addresses"],
        same_node=flags["same_node_for_daemon_sets"],
    )
    check_sources(flags["manifests"], flags["kubeconfig"])
    wanted = Wanted(flags["manifests"], flags["dump_file"], flags["kubeconfig"], flags["control_socket"])
    set_up_logs(QUIET, "console")  # on stderr: what is printed is the answer, for a program to read
    loaded = load(wanted, settings.node)
    if loaded.settings is None:
        return loaded, settings
    fields = {
        "node": "node",
        "cluster_cidr": "cluster_cidrs",
        "nodeport_addresses": "node_port_addresses",
        "same_node_for_daemon_sets": "same_node",
    }
    default = click.core.ParameterSource.DEFAULT
    given = {
        field: getattr(settings, field)
        for flag, field in fields.items()
        if context.get_parameter_source(flag) is not default
    }
    return loaded, msgspec.structs.replace(loaded.settings, **given)
