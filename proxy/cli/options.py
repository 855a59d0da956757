"""Flags that several commands share, named as kube-proxy's where it has them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from endpointslice.daemonsets import Mode
from proxy.config import (
    check_sources,
    default_hostname,
    parse_cluster_cidrs,
    parse_node_port_addresses,
)
from proxy.offline import Loaded, Wanted, load
from proxy.planner.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_SOCKET = Path("/run/closeby/closeby.sock")


def source_options(command: F) -> F:
    """--manifests and --kubeconfig."""
    manifests = click.option(
        "--manifests",
        type=click.Path(path_type=Path),
        help="Read Services, slices, Nodes and DaemonSets from the YAML and JSON files of this folder, and watch it.",
    )
    kubeconfig = click.option(
        "--kubeconfig", type=click.Path(path_type=Path), help="Talk to the API server that this file names."
    )
    return manifests(kubeconfig(command))


def settings_options(command: F) -> F:
    """What the decisions read."""
    for option in (
        click.option(
            "--same-node-for-daemon-sets",
            type=click.Choice([mode.value for mode in Mode]),
            default=Mode.AUTO.value,
            show_default=True,
            help="PreferClose means the same node for a Service whose pods are one DaemonSet's: if the DaemonSet "
            "covers its nodes, always, or never.",
        ),
        click.option(
            "--nodeport-addresses",
            default="primary",
            show_default=True,
            metavar="CIDRS",
            help="Node addresses that NodePorts answer on: `primary`, or networks such as 192.0.2.0/24,2001:db8::/64.",
        ),
        click.option(
            "--cluster-cidr",
            default="",
            metavar="CIDR[,CIDR]",
            help="The pods' network, one a family: traffic to a ClusterIP from elsewhere is masqueraded.",
        ),
    ):
        command = option(command)
    return command


def build_settings(node: str, *, cluster_cidr: str, nodeport_addresses: str, same_node: str) -> Settings:
    """Settings from the flags' texts; ConfigError names the flag."""
    return Settings(
        node=default_hostname(node),
        cluster_cidrs=parse_cluster_cidrs("--cluster-cidr", cluster_cidr),
        node_port_addresses=parse_node_port_addresses("--nodeport-addresses", nodeport_addresses),
        same_node=Mode(same_node),
    )


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
