"""Flags that several commands share, named as kube-proxy's where it has them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from endpointslice.daemonsets import Mode
from proxy.config import (
    default_hostname,
    parse_cluster_cidrs,
    parse_node_port_addresses,
)
from proxy.planner.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_SOCKET = Path("/run/closeby/closeby.sock")


manifests_option = click.option(
    "--manifests",
    type=click.Path(path_type=Path),
    help="Read Services, slices, Nodes and DaemonSets from the YAML and JSON files of this folder, and watch it.",
)
same_node_option = click.option(
    "--same-node-for-daemon-sets",
    type=click.Choice([mode.value for mode in Mode]),
    default=Mode.AUTO.value,
    show_default=True,
    help="PreferClose means the same node for a Service whose pods are one DaemonSet's: if the DaemonSet "
    "covers its nodes, always, or never.",
)


def source_options(command: F) -> F:
    """--manifests and --kubeconfig."""
    kubeconfig = click.option(
        "--kubeconfig", type=click.Path(path_type=Path), help="Talk to the API server that this file names."
    )
    return manifests_option(kubeconfig(command))


def settings_options(command: F) -> F:
    """What the decisions read."""
    for option in (
        same_node_option,
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
